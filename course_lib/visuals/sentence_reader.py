"""A box to type a sentence into, and the attention of whatever reads it below."""

import html
import traceback
from collections.abc import Callable

import ipywidgets as widgets

from course_lib.visuals.attention_view import AttentionView
from course_lib.visuals.explorers import KeysStayInside

MOST_CHARACTERS = 5000


class SentenceReader(widgets.VBox):
    """Show a text box and the attention weights of the text in it.

    ``read(text)`` gives an object with ``tokens``, ``weights`` (L, H, T, S) and ``note``, a
    sentence that is shown where it is not empty; where the keys are other words than the queries
    it has ``key_tokens``. ``view`` is the AttentionView now shown; ``submit(text)`` does from
    Python what the button does.

    A ValueError of ``read`` is what is wrong with the text: its sentence is shown below the box,
    and the view stays. Any other error is shown there and raised.
    """

    # ipywidgets 7 shows itself by this method, past the bundle below.
    _ipython_display_ = None

    def __init__(
        self,
        read: Callable,
        text: str,
        *,
        layer: int = 0,
        head: int = 0,
        label: str = "Your sentence",
    ):
        self._read = read
        self._box = widgets.Textarea(value=text, description=label, rows=2)
        self._box.style.description_width = "initial"
        self._box.layout.width = "min(100%, 640px)"
        self._button = widgets.Button(description="Read it", button_style="primary")
        self._button.on_click(lambda _: self.submit(self._box.value))
        self._words = widgets.HTML()
        self._place = widgets.VBox()
        self.view = self._show(text, layer, head)
        super().__init__([KeysStayInside(), self._box, self._button, self._words, self._place])

    def submit(self, text: str) -> AttentionView:
        """Read a text and show its attention, at the layer and head that are chosen now."""
        self._box.value = text
        try:
            self.view = self._show(text, self.view.layer, self.view.head)
        except ValueError as error:
            self._words.value = f'<p role="alert">{html.escape(str(error))}</p>'
        return self.view

    def _show(self, text: str, layer: int, head: int) -> AttentionView:
        self._button.disabled = True
        try:
            reading = self._read(text[:MOST_CHARACTERS])
            cut = ""
            if len(text) > MOST_CHARACTERS:
                cut = f"The first {MOST_CHARACTERS:,} of {len(text):,} characters were read."
            keys = getattr(reading, "key_tokens", None)
            view = AttentionView(reading.weights, reading.tokens, keys, layer=layer, head=head)
        except ValueError:
            raise
        except Exception:
            report = html.escape(traceback.format_exc(limit=-2))
            self._words.value = f'<pre role="alert" style="white-space:pre-wrap">{report}</pre>'
            raise
        finally:
            self._button.disabled = False
        note = html.escape(" ".join(part for part in (reading.note, cut) if part))
        self._words.value = f'<p role="status" aria-live="polite">{note}</p>' if note else ""
        old, self._place.children = self._place.children, [view]
        for widget in old:
            widget.close()
        return view

    def _repr_mimebundle_(self, **options) -> dict:
        live = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        other, _ = self.view._repr_mimebundle_()
        return {**other, "application/vnd.jupyter.widget-view+json": live}

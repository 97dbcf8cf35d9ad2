"""A button that starts a longer run in the notebook, and shows it as it goes."""

import html
import time
import traceback
from collections.abc import Callable, Mapping

import ipywidgets as widgets

from course_lib.visuals.explorers import KeysStayInside
from course_lib.visuals.training_curve import TrainingCurve

SECONDS = 1.0  # between two updates: they take time from the run


class LiveRun(widgets.VBox):
    """Choose a run and start it: a bar and a curve follow it, and its result stands below.

    ``runs`` maps what is to be chosen to ``run(watch)``, which does it, calls ``watch(history,
    steps)`` as ``fit`` does, and returns a sentence about what came out. ``start(name)`` does from
    Python what the button does.

    The stop button of the notebook interrupts a run; ``fit`` then ends it with what it has. An
    error in a run is shown below the button and raised.
    """

    # ipywidgets 7 shows itself by this method, past the bundle below.
    _ipython_display_ = None

    def __init__(
        self,
        runs: Mapping[str, Callable[[Callable], str]],
        *,
        choose: str,
        measured: str = "exact match",
    ):
        self._runs, self._measured = dict(runs), measured
        self.choice = widgets.Dropdown(options=list(runs), description=choose)
        self.choice.style.description_width = "initial"
        self.button = widgets.Button(description="Run it", button_style="primary")
        self.button.on_click(lambda _: self.start(self.choice.value))
        self._bar = widgets.IntProgress(value=0, layout=widgets.Layout(width="min(100%, 480px)"))
        self._bar.layout.visibility = "hidden"
        self._curve, self._words = widgets.HTML(), widgets.HTML()
        row = widgets.HBox([self.choice, self.button])
        row.layout.flex_flow = "row wrap"
        super().__init__([KeysStayInside(), row, self._bar, self._curve, self._words])

    def start(self, name: str) -> str:
        """Do the run of that name, and return its sentence."""
        self.choice.value, self.button.disabled = name, True
        self._say("It begins.")
        self._curve.value = ""
        try:
            said = self._runs[name](self._follow())
        except Exception:
            report = html.escape(traceback.format_exc(limit=-2))
            self._words.value = f'<pre role="alert" style="white-space:pre-wrap">{report}</pre>'
            raise
        finally:
            self.button.disabled = False
            self._bar.layout.visibility = "hidden"
        self._say(f"{name}: {said}")
        return said

    def _follow(self) -> Callable:
        """A ``watch`` for one run: the bar, a line of text, and the curve."""
        drawn, last = TrainingCurve(self._measured), time.monotonic()

        def watch(history, steps):
            nonlocal last
            if not history.ended and time.monotonic() - last < SECONDS:
                return
            self._bar.max, self._bar.value = steps or 1, len(history.losses) if steps else 0
            self._bar.layout.visibility = "visible"
            bundle = drawn.bundle(history, steps)
            self._curve.value = bundle["text/html"]
            self._say(bundle["text/plain"])
            last = time.monotonic()

        return watch

    def _say(self, text: str) -> None:
        self._words.value = f'<p role="status" aria-live="polite">{html.escape(text)}</p>'

    def __repr__(self) -> str:
        names = ", ".join(self._runs)
        return f"Here a button starts a run, where a notebook is alive: {names}."

    def _repr_mimebundle_(self, **options) -> dict:
        live = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        return {
            "application/vnd.jupyter.widget-view+json": live,
            "text/html": f"<p>{html.escape(repr(self))}</p>",
            "text/plain": repr(self),
        }

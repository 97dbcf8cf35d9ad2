"""What the course's widgets share: one module, four forms of output, one self-contained page."""

import base64
import html
import json
import uuid
from functools import lru_cache
from pathlib import Path

import anywidget
import numpy as np
import traitlets
from matplotlib.figure import Figure

FOLDER = Path(__file__).parent


@lru_cache
def joined_module(name: str) -> str:
    """Join the shared text and a widget's own into one JavaScript module."""
    shared = (FOLDER / "widget_common.mjs").read_text(encoding="utf-8")
    return f"{shared}\n{(FOLDER / name).read_text(encoding='utf-8')}"


class CourseWidget(anywidget.AnyWidget):
    """A widget that also reads well where nothing runs it.

    A subclass names its module in ``_module_file`` (it ends with ``export default { render };``),
    keeps all that the module needs in
    synced traits (numbers as bytes), and gives ``picture`` and ``sentence``.

    Shown in a notebook it is: the live widget; HTML with a picture that the same module replaces,
    on a page without a kernel or a network; a PNG; a sentence.
    """

    # ipywidgets 7 shows a widget by this method, and would leave out the other forms.
    _ipython_display_ = None

    def __init_subclass__(cls, **options):
        # A keyword of the class would be simpler; traitlets 5.7, which Colab has, takes none.
        if "_module_file" in vars(cls):
            cls._esm = joined_module(cls._module_file)
        super().__init_subclass__(**options)

    def picture(self) -> Figure:
        """Draw what the widget shows now."""
        raise NotImplementedError

    def sentence(self) -> str:
        """Say what the widget shows now."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.sentence()

    def page_state(self) -> dict:
        """Give what a page without a kernel needs: every synced trait of the course's own."""
        inherited = anywidget.AnyWidget.class_trait_names(sync=True)
        own = set(self.trait_names(sync=True)) - set(inherited)
        return {name: getattr(self, name) for name in sorted(own) if not name.startswith("_")}

    def to_html(self, path: str | Path) -> Path:
        """Write one file that works without a kernel and a network, and give its path."""
        path = Path(path)
        title = html.escape(type(self).__name__)
        page = (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            # An icon of its own, or a browser would ask a server for one.
            f'<title>{title}</title>\n<link rel="icon" href="data:,">\n<style>\n'
            ":root { color-scheme: light dark }\nbody { max-width: 900px; margin: 24px auto; "
            "padding: 0 12px; font-family: system-ui, sans-serif }\nimg { max-width: 100% }\n"
            f"</style>\n</head>\n<body>\n{self._fragment(self._png())}\n</body>\n</html>\n"
        )
        path.write_text(page, encoding="utf-8")
        return path

    def _repr_mimebundle_(self, **options):
        live, metadata = super()._repr_mimebundle_(**options)
        picture = self._png()
        return {
            **live,
            "text/html": self._fragment(picture),
            "image/png": picture,
            "text/plain": self.sentence(),
        }, metadata

    def _png(self) -> str:
        from course_lib.visuals.figures import png

        return base64.b64encode(png(self.picture(), dpi=110)).decode()

    def _fragment(self, picture: str) -> str:
        name = uuid.uuid4().hex
        source = self._esm if isinstance(self._esm, str) else str(self._esm)
        module = source.replace("export default", "const widget =")
        image = (
            f'<img alt="{html.escape(self.sentence())}" style="max-width:100%;height:auto" '
            f'src="data:image/png;base64,{picture}">'
        )
        return (
            f'<div data-course-widget="{name}">{image}</div>\n<script type="module">\n{module}\n'
            f'runAlone(widget, "{name}", {_script_json(self.page_state())});\n</script>'
        )


def _script_json(state: dict) -> str:
    """Write JSON that can stand within a script: no "<" can end it."""
    return json.dumps(state, default=_bytes_as_json).replace("<", "\\u003c")


def _bytes_as_json(value):
    return {"base64": base64.b64encode(value).decode()}


def as_float_array(numbers) -> np.ndarray:
    """Turn a tensor (any device or dtype, with a gradient or not), array or list into an array.

    Half precision becomes float32. Errors: TypeError for what holds no real numbers.
    """
    if isinstance(numbers, (list, tuple)) and any(hasattr(part, "detach") for part in numbers):
        numbers = [as_float_array(part) for part in numbers]
    if hasattr(numbers, "detach"):
        numbers = numbers.detach().cpu()
        # numpy has no bfloat16.
        exact = numbers.dtype.itemsize == 8 or numbers.is_complex()
        numbers = (numbers if exact else numbers.float()).numpy()
    array = np.asarray(numbers)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"expected real numbers, not {array.dtype}")
    return array if array.dtype == np.float64 else array.astype(np.float32)


def float_bytes(array: np.ndarray) -> bytes:
    """Give numbers as little-endian float32, in the array's own order of axes."""
    return np.ascontiguousarray(array, dtype="<f4").tobytes()


def packed_bits(allowed: np.ndarray) -> bytes:
    """Give booleans eight to a byte, lowest bit first."""
    return np.packbits(allowed.ravel(), bitorder="little").tobytes()


def clean_words(words, count: int, name: str, axis: str) -> list[str]:
    """Check that there is one word for each row or column, and give them as text.

    Errors: ValueError for one text in place of a list, or another number of words.
    """
    if isinstance(words, str):
        raise ValueError(f"{name} is one text, expected a list of {count} words: split it first")
    texts = [str(word) for word in words]
    if len(texts) != count:
        raise ValueError(f"{len(texts)} {name} for {count} {axis}: give one word each")
    # Half of a surrogate pair can't be sent.
    return [text.encode("utf-8", "replace").decode() for text in texts]


class Selection(traitlets.Int):
    """A position that the learner chose; None where nothing is chosen."""

    default_value = None
    allow_none = True

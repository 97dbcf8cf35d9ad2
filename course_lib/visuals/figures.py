"""Figures on a page: a picture with words for those who do not see it."""

import base64
import html
import io
import sys

from IPython.display import display
from matplotlib.figure import Figure


def show_figure(figure: Figure, alt: str, summary: str = "") -> None:
    """Show a figure as an image with alt text and a caption, then close it.

    ``alt`` says what is drawn, for a reader who hears the page. ``summary`` says in one sentence
    what is to be seen, and stands below the picture; where only text is shown it stands alone.

    Errors: ValueError for an empty ``alt``; TypeError for anything but a figure.
    """
    display(figure_bundle(figure, alt, summary), raw=True)
    # A figure of pyplot would be shown a second time at the end of the cell.
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(figure)


def figure_bundle(figure: Figure, alt: str, summary: str = "", dpi: int = 160) -> dict[str, str]:
    """Give what a notebook stores of a figure: HTML with the picture, and plain text.

    The picture stands on a white card of its own, so that it reads in dark mode too.
    """
    if not isinstance(figure, Figure):
        raise TypeError(
            f"expected a matplotlib Figure, not {type(figure).__name__}; "
            "an Axes holds its own as axes.figure"
        )
    if not alt.strip():
        raise ValueError("alt is empty: say in a sentence what the figure shows")
    picture = png(figure, dpi=dpi)
    inches = int.from_bytes(picture[16:20], "big") / dpi  # the width in the PNG's own header
    card = "max-width:100%;height:auto;box-sizing:border-box;background:#fff;padding:10px;"
    card += "border:1px solid rgba(128,128,128,.35);border-radius:8px"
    caption = f'<figcaption style="margin-top:6px">{html.escape(summary)}</figcaption>'
    source = base64.b64encode(picture).decode()
    return {
        "text/html": (
            '<figure style="margin:8px 0;max-width:760px">'
            f'<img alt="{html.escape(alt)}" width="{round(96 * inches)}" style="{card}" '
            f'src="data:image/png;base64,{source}">{caption if summary else ""}</figure>'
        ),
        "text/plain": summary or alt,
    }


def png(figure: Figure, dpi: int = 160, *, tight: bool = True) -> bytes:
    """Draw a figure as a PNG on a white ground: with nothing cut off, or at its exact size."""
    buffer = io.BytesIO()
    box = "tight" if tight else figure.bbox_inches
    figure.savefig(buffer, format="png", dpi=dpi, facecolor="white", bbox_inches=box)
    return buffer.getvalue()

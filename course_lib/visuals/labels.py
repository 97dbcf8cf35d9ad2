"""Labels of a plot: tokens as they are, in fonts that hold their characters."""

from functools import lru_cache

import matplotlib
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

LONGEST_LABEL = 16


def drawable(text: str, longest: int = LONGEST_LABEL) -> tuple[str, list[str]]:
    """Make a token fit for a label: ``(text, font families that hold all of its characters)``.

    A blank or a control character is written visibly; a character that no installed font holds is
    written as its code point, since matplotlib would warn and draw a box.

    >>> drawable("a\\n")[0]
    'a\\\\n'
    """
    if not text.strip(" "):
        text = "␣" * len(text) or "(empty)"
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    written, families = "", list(matplotlib.rcParams["font.family"])
    for character in text:
        family = _family_with(ord(character)) if character.isprintable() else None
        if family is None:
            escaped = character.encode("unicode_escape").decode()
            written += escaped if ord(character) < 32 else f"U+{ord(character):04X}"
            continue
        written += character
        if family and family not in families:
            families.append(family)
    return written, families


@lru_cache(maxsize=4096)
def _family_with(code: int) -> str | None:
    """Name the installed family that holds a character: "" for the default one, None for none."""
    if code in _characters(findfont(FontProperties())):
        return ""
    for entry in fontManager.ttflist:
        upright = entry.style == "normal" and entry.weight in (400, "normal", "regular")
        # "Last Resort" holds a box for every character there is.
        if upright and "Last Resort" not in entry.name and code in _characters(entry.fname):
            return entry.name
    return None


@lru_cache(maxsize=1024)
def _characters(path: str) -> frozenset[int]:
    # A font of bitmaps (coloured emoji) can't be drawn by matplotlib.
    try:
        font = get_font(path)
    except RuntimeError:
        return frozenset()
    return frozenset(font.get_charmap()) if font.scalable else frozenset()

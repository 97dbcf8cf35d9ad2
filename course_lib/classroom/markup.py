"""Feedback as HTML: escaped, with code between backticks."""

import html
import re


def marked(text: str) -> str:
    """Escape a text for HTML; what stands between backticks becomes code.

    >>> marked("is `a < b`?")
    'is <code>a &lt; b</code>?'
    """
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def paragraphs(text: str) -> str:
    """Paragraphs apart by an empty line; single line ends stay.

    >>> paragraphs("one\\n\\nNext: two")
    '<p style="margin:6px 0">one</p><p style="margin:6px 0"><strong>Next:</strong> two</p>'
    """
    parts = []
    for part in text.split("\n\n"):
        body = marked(part).replace("\n", "<br>")
        if part.startswith("Next:"):
            body = "<strong>Next:</strong>" + body.removeprefix("Next:")
        parts.append(f'<p style="margin:6px 0">{body}</p>')
    return "".join(parts)

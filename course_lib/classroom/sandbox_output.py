"""Keep what one thread prints or displays, while the others do so as before."""

import sys
import threading

from IPython import get_ipython

KEPT_CHARACTERS = 2000


class Printed:
    """The first characters that a thread printed, and how many lines there were in all."""

    def __init__(self):
        self.text = ""
        self.lines = 0

    def add(self, text: str) -> None:
        self.lines += text.count("\n")
        if len(self.text) < KEPT_CHARACTERS:
            self.text += text[: KEPT_CHARACTERS - len(self.text)]


class _Fork:
    """A stream that takes one thread's words aside and passes all else on."""

    def __init__(self, stream, thread: threading.Thread, printed: Printed):
        self._stream, self._thread, self._printed = stream, thread, printed

    def write(self, text):
        if threading.current_thread() is not self._thread:
            return self._stream.write(text)
        self._printed.add(text)
        return len(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        if threading.current_thread() is not self._thread:
            self._stream.flush()

    def __getattr__(self, name):
        return getattr(self._stream, name)


def _divert(publisher, thread: threading.Thread, printed: Printed):
    """Take what ``thread`` shows with ``display()`` aside as text; return what undoes this."""

    def publish(data, *more, **named):
        if threading.current_thread() is not thread:
            return real_publish(data, *more, **named)
        printed.add(f"{data.get('text/plain', '(shown with display)')}\n")

    def clear_output(*more, **named):
        if threading.current_thread() is not thread:
            return real_clear(*more, **named)

    real_publish, real_clear = publisher.publish, publisher.clear_output
    publisher.publish, publisher.clear_output = publish, clear_output

    def undo():
        publisher.publish, publisher.clear_output = real_publish, real_clear

    return undo


class Capture:
    """Divert what ``thread`` prints to stdout and stderr, or displays, into ``printed``."""

    def __init__(self, thread: threading.Thread, printed: Printed):
        self.streams = sys.stdout, sys.stderr
        self.forks = tuple(_Fork(stream, thread, printed) for stream in self.streams)
        sys.stdout, sys.stderr = self.forks
        shell = get_ipython()
        self.end_display = _divert(shell.display_pub, thread, printed) if shell else None

    def end(self) -> bool:
        """Put the streams back; say whether others had been put in their place."""
        replaced = (sys.stdout, sys.stderr) != self.forks
        sys.stdout, sys.stderr = self.streams
        if self.end_display:
            self.end_display()
        return replaced

"""Keep what one thread prints, while the others print as before."""

import sys
import threading

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


class Capture:
    """Divert what ``thread`` prints to stdout and stderr into ``printed``."""

    def __init__(self, thread: threading.Thread, printed: Printed):
        self.streams = sys.stdout, sys.stderr
        self.forks = tuple(_Fork(stream, thread, printed) for stream in self.streams)
        sys.stdout, sys.stderr = self.forks

    def end(self) -> bool:
        """Put the streams back; say whether others had been put in their place."""
        replaced = (sys.stdout, sys.stderr) != self.forks
        sys.stdout, sys.stderr = self.streams
        return replaced

"""Run pip with one line of progress, its whole output in a log."""

import os
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

from environment.problem import explain

FLAGS = ("--no-input", "--disable-pip-version-check", "--no-color")
QUIET_SECONDS = 15


class Progress:
    """Condense pip's lines to what it is doing now.

    On a terminal one line moves; into a file, a line is written now and then.
    """

    def __init__(self, stream=None, clock=time.monotonic):
        self.stream, self.clock = stream or sys.stdout, clock
        self.moves = self.stream.isatty()
        self.started = self.shown = clock()
        self.doing, self.wheel, self.seen = "Starting pip", "", 0

    def feed(self, line: str) -> None:
        """Take one line of pip's output."""
        line = line.strip()
        if name := re.match(r"Collecting ([\w.-]+)", line):
            self.seen += 1
            self.doing = f"Looking up {name[1]} ({self.seen} packages so far)"
        elif name := re.match(
            r"Downloading (\S+?)(?:-py|-cp|-abi|\.tar|\.whl|\.metadata| |$)", line
        ):
            self.wheel = name[1].rsplit("/", 1)[-1]
            self.doing = f"Downloading {self.wheel}"
        elif size := re.match(r"Progress (\d+) of (\d+)", line):
            have, all_ = (int(part) / 1e6 for part in size.groups())
            if all_ > 5:
                self.doing = f"Downloading {self.wheel}: {have:.0f} of {all_:.0f} MB"
        elif names := re.match(r"Installing collected packages: (.+)", line):
            self.doing = f"Unpacking {len(names[1].split(','))} packages"

    def tick(self) -> None:
        """Show what pip is doing, if it is time to."""
        now = self.clock()
        text = f"  {now - self.started:4.0f} s  {self.doing}"
        if self.moves:
            self.stream.write("\r\033[K" + text[:78])
        elif now - self.shown >= QUIET_SECONDS:
            self.stream.write(text + "\n")
            self.shown = now
        self.stream.flush()

    def end(self) -> None:
        """Leave a clean line."""
        if self.moves:
            self.stream.write("\r\033[K")
            self.stream.flush()


def run(command: list[str], log: Path, *, held: tuple[int, ...] = (), cwd: Path) -> str:
    """Run a command to its end with progress; return its output, or raise what it means.

    `held` are open files that the command keeps: if this process is killed, the lock lasts until
    the command is gone too.
    """
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
    lines: queue.Queue[str | None] = queue.Queue()
    output, progress = [], Progress()
    with (
        log.open("a", encoding="utf-8") as record,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env=environment,
            cwd=cwd,
            pass_fds=held,
        ) as process,
    ):
        record.write(f"$ {' '.join(command)}\n")

        def read() -> None:
            for line in process.stdout:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        try:
            while (line := next_line(lines)) is not None:
                if line and not line.startswith("Progress "):
                    record.write(line)
                    output.append(line)
                progress.feed(line)
                progress.tick()
        finally:
            progress.end()
            if sys.exc_info()[0] is not None:
                process.terminate()
    if process.returncode:
        raise explain("".join(output), log)
    return "".join(output)


def next_line(lines: "queue.Queue[str | None]") -> str | None:
    """The next line, an empty one after a second of silence, None at the end."""
    try:
        return lines.get(timeout=1)
    except queue.Empty:
        return ""


def pip_install(python: Path, *arguments: str) -> list[str]:
    """The command for `pip install`, asking nothing."""
    return [str(python), "-m", "pip", "install", *FLAGS, *arguments]

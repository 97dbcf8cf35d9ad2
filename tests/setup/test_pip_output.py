"""pip's words become one plain line, and its progress one line that moves."""

import io
from pathlib import Path

import pytest

from environment.pip_steps import Progress
from environment.problem import explain

LOG = Path("/a/.venv/install.log")
BROKEN = (
    "WARNING: Retrying (Retry(total=4)) after connection broken by"
    " 'NewConnectionError('<x>: Failed to establish a new connection')': /simple/torch/\n"
)
MISSING = (
    "ERROR: Could not find a version that satisfies the requirement torch==2.13.0"
    " (from versions: 1.0)\nERROR: No matching distribution found for torch==2.13.0\n"
)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left", "full"),
        ("ERROR: ... [Errno 13] Permission denied: '/a/.venv/lib/x'", "Not allowed to write /a/"),
        (BROKEN + MISSING, "HTTPS_PROXY"),
        (
            "SSLError(SSLCertVerificationError(1, 'CERTIFICATE_VERIFY_FAILED'))\n" + BROKEN,
            "PIP_CERT",
        ),
        (MISSING, "no build of torch==2.13.0 for Python"),
        ("Collecting x\nERROR: ResolutionImpossible: for help\n\n", "ResolutionImpossible"),
        ("usage: pip\nno such option: --fast\n", "no such option: --fast"),
        ("", "without a word"),
    ],
)
def test_each_fault_has_its_own_line(output, words):
    said = str(explain(output, LOG))
    assert words in said
    assert "\n" not in said


class Terminal(io.StringIO):
    def isatty(self):
        return True


def feed(stream, lines, seconds=1.0):
    now = iter(range(10**6))
    progress = Progress(stream, clock=lambda: next(now) * seconds)
    for line in lines:
        progress.feed(line)
        progress.tick()
    progress.end()
    return stream.getvalue()


PIP = (
    "Collecting torch==2.13.0 (from attention-by-hand==0.1.0)",
    "  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (200.1 MB)",
    "Progress 103000000 of 200100000",
    "Collecting jinja2",
    "  Downloading https://somewhere/jinja2-3.1.6-py3-none-any.whl (135 kB)",
    "Progress 1000 of 135000",
    "Installing collected packages: jinja2, torch, attention-by-hand",
)


def test_on_a_terminal_one_line_moves_and_is_cleared():
    shown = feed(Terminal(), PIP)
    assert "\n" not in shown
    lines = shown.split("\r\033[K")
    assert [line.split("s  ", 1)[-1] for line in lines[1:-1]] == [
        "Looking up torch (1 packages so far)",
        "Downloading torch-2.13.0",
        "Downloading torch-2.13.0: 103 of 200 MB",
        "Looking up jinja2 (2 packages so far)",
        "Downloading jinja2-3.1.6",
        "Downloading jinja2-3.1.6",
        "Unpacking 3 packages",
    ]
    assert lines[-1] == "" and all(len(line) <= 78 for line in lines)


def test_into_a_file_a_line_is_written_now_and_then():
    shown = feed(io.StringIO(), PIP, seconds=8.0)
    assert "\r" not in shown
    assert 3 <= shown.count("\n") < len(PIP)
    assert shown.splitlines()[-1].endswith("Downloading jinja2-3.1.6")

"""Where torch comes from: its index of CPU builds, or the ordinary index."""

import re
import shutil
import sys
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path

from environment.problem import SetupProblem

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
SECONDS = 5


def check_name(asked: str) -> None:
    """Raise for a value of TORCH that means nothing."""
    if asked not in ("auto", "cpu", "default"):
        raise SetupProblem(f"TORCH={asked} is unknown. Use TORCH=auto, TORCH=cpu or TORCH=default.")


def has_nvidia() -> bool:
    """True if this Linux has an NVIDIA driver."""
    return shutil.which("nvidia-smi") is not None or Path("/proc/driver/nvidia").exists()


def answers(index: str, seconds: float = SECONDS) -> bool:
    """True if the index serves torch's page within `seconds`.

    A time-out of urllib does not cover the look-up of the name: a thread bounds the whole.
    """
    answered = threading.Event()

    def ask() -> None:
        try:
            with urllib.request.urlopen(f"{index}/torch/", timeout=seconds) as page:
                if page.status == 200:
                    answered.set()
        except OSError:
            return

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return answered.is_set()


def choose(
    asked: str,
    *,
    index: str = CPU_INDEX,
    platform: str = sys.platform,
    nvidia: Callable[[], bool] = has_nvidia,
    probe: Callable[[str], bool] = answers,
) -> str:
    """`cpu` for the index of CPU builds, `default` for the ordinary index."""
    if asked != "auto":
        return asked
    if platform != "linux" or nvidia():
        return "default"
    if probe(index):
        print(f"No NVIDIA GPU: torch's CPU build is taken from {index}.", flush=True)
        return "cpu"
    print(
        f"{index} does not answer: torch comes from the ordinary index (on Linux about 3 GB more).",
        flush=True,
    )
    return "default"


def pinned_torch(constraints: Path) -> str:
    """The requirement `torch==X` of the constraints file."""
    found = re.search(r"^torch==[^\s;]+", constraints.read_text(), re.MULTILINE)
    if found is None:
        raise SetupProblem(f"{constraints} pins no torch. Make it anew: make constraints")
    return found[0]

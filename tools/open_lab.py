"""Open JupyterLab on lesson 00: on this machine alone, with a token, on a free port."""

import os
import secrets
import socket
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LESSONS, LESSON = ROOT / "notebooks", "00_start_here.ipynb"
ADDRESS = "127.0.0.1"
FIRST_PORT, TRIES = 8888, 50


def is_free(port: int) -> bool:
    """True if a server of ours could listen on this port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True


def free_port(asked: int) -> int:
    """The asked port if it is free, else the next free one, saying so."""
    last = min(asked + TRIES, 65536)
    for port in range(asked, last):
        if is_free(port):
            if port != asked:
                print(f"Port {asked} is in use: JupyterLab takes {port}.", flush=True)
            return port
    raise SystemExit(
        f"The ports {asked} to {last - 1} are all in use or not allowed. Name another:"
        " make lab PORT=9000"
    )


def read_port(text: str) -> int:
    """The port that PORT names."""
    if text.isdecimal() and 1 <= int(text) <= 65535:
        return int(text)
    raise SystemExit(f"PORT={text} is no port. Use a number from 1024 to 65535: make lab PORT=9000")


def main() -> None:
    """Become the JupyterLab server; Ctrl-C ends it."""
    if not (LESSONS / LESSON).exists():
        raise SystemExit(f"{LESSONS / LESSON} is missing. To have it back: git checkout notebooks")
    port = free_port(read_port(os.environ.get("PORT") or str(FIRST_PORT)))
    token = os.environ.setdefault("JUPYTER_TOKEN", secrets.token_hex(24))
    command = [sys.executable, "-m", "jupyterlab", LESSON, f"--ip={ADDRESS}", f"--port={port}"]
    if os.environ.get("BROWSER_OPEN") == "no":
        command.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    command.append("--log-level=WARN")
    print(f"Lesson 00: http://{ADDRESS}:{port}/lab/tree/{LESSON}?token={token}", flush=True)
    print("Ctrl-C ends JupyterLab.", flush=True)
    os.chdir(LESSONS)  # what JupyterLab's file browser shows: the lessons and what one writes
    os.execv(sys.executable, command)


if __name__ == "__main__":
    main()

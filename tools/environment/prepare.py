"""Make .venv ready, doing only what is left to do."""

import argparse
import dataclasses
import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from environment import checks, stamp, torch_source
from environment.pip_steps import pip_install, run
from environment.problem import SetupProblem, full_disk

ROOT = Path(__file__).resolve().parents[2]
INSTALLER = ("pip", "setuptools")
SHOW_BYTES = (
    "--progress-bar",
    "raw",
)  # the pinned pip knows it, the one that Python brings may not


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked for on the command line and in the environment."""

    extra: str
    root: Path = ROOT
    torch: str = "auto"
    python_chosen: bool = False
    models: bool = True
    index: str = torch_source.CPU_INDEX

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"


def main(arguments: list[str]) -> int:
    """Read the request, make .venv ready; every fault is one line on standard error."""
    parser = argparse.ArgumentParser(prog="setup_environment.py", description=__doc__)
    parser.add_argument("extra", choices=("lab", "dev"))
    request = Request(
        extra=parser.parse_args(arguments).extra,
        torch=os.environ.get("TORCH") or "auto",
        python_chosen=bool(os.environ.get("PYTHON")),
        models=os.environ.get("MODELS") != "none",
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        prepare(request)
    except SetupProblem as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again: what is downloaded is kept.", file=sys.stderr)
        return 130
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            print(full_disk(request.root), file=sys.stderr)
        else:
            print(
                f"{error}. The course writes into its own folder ({request.root}) and must be"
                " allowed to.",
                file=sys.stderr,
            )
        return 1
    return 0


def prepare(request: Request) -> None:
    """Bring .venv to what `request` wants, and fetch the weights once."""
    torch_source.check_name(request.torch)
    with checks.only_one(request.root / ".venv.lock") as lock:
        found = stamp.read(request.venv)
        wanted = stamp.Stamp(
            root=str(request.root),
            base=os.path.realpath(sys.executable),
            extra=request.extra,
            torch=request.torch,
            inputs=stamp.digest(request.root),
        )
        step = stamp.decide(
            found, wanted, python_chosen=request.python_chosen, torch_asked=request.torch
        )
        if not request.python.exists():  # its Python may have been removed from the machine
            step = "rebuild"
        if step != "ready":
            found = install(request, wanted, found if step == "update" else None, lock)
    if request.models and not found.models:
        fetch_models(request)
        stamp.write(request.venv, stamp.after_models(found))


def install(
    request: Request, wanted: stamp.Stamp, found: stamp.Stamp | None, lock: int
) -> stamp.Stamp:
    """Install over what `found` describes, or from nothing; return the stamp it leaves."""
    started = time.monotonic()
    if found is None:
        checks.check_venv()
        checks.check_ours(request.venv)
    torch = found.torch if found else torch_source.choose(request.torch, index=request.index)
    extra = stamp.wider(found.extra, wanted.extra) if found else wanted.extra
    base = found.base if found else wanted.base
    log = request.venv / "install.log"
    if found is None:
        checks.check_room(request.root, torch)
        new_venv(request, log)
    else:
        print("The pinned packages changed: bringing .venv up to date.", flush=True)
        stamp.remove(request.venv)

    constraints = request.root / "constraints.txt"
    limits = ("-c", str(constraints))

    def pip(*arguments: str) -> None:
        command = pip_install(request.python, *arguments)
        run(command, log, held=(lock,), cwd=request.root)

    pip(*limits, *INSTALLER)
    if torch == "cpu":
        try:
            only_torch = ("--no-deps", torch_source.pinned_torch(constraints))
            pip(*SHOW_BYTES, "--index-url", request.index, *only_torch)
        except SetupProblem as problem:
            if request.torch == "cpu":
                raise
            print(f"{problem}\nTrying the ordinary index for torch instead.", flush=True)
            torch = "default"
            checks.check_room(request.root, torch)
    pip(*SHOW_BYTES, *limits, "--no-build-isolation", "-e", f".[{extra}]")

    done = dataclasses.replace(
        wanted, base=base, extra=extra, torch=torch, models=bool(found and found.models)
    )
    stamp.write(request.venv, done)
    print(f"The packages are ready ({time.monotonic() - started:.0f} s).", flush=True)
    return done


def new_venv(request: Request, log: Path) -> None:
    """An empty virtual environment in place of whatever is left of an earlier one."""
    if request.venv.exists() and any(request.venv.iterdir()):
        print(".venv is not complete or no longer fits: building it anew.", flush=True)
        shutil.rmtree(request.venv)
    request.venv.mkdir(exist_ok=True)
    log.touch()
    version = ".".join(str(part) for part in sys.version_info[:3])
    print(
        f"Setting up the course in {request.venv} with Python {version}."
        " It takes some minutes, once; the log is .venv/install.log.",
        flush=True,
    )
    made = subprocess.run(
        [sys.executable, "-m", "venv", str(request.venv)], capture_output=True, text=True
    )
    if made.returncode:
        log.write_text(made.stdout + made.stderr)
        if "No space left" in made.stdout + made.stderr:
            raise full_disk(request.venv)
        raise SetupProblem(
            f"{sys.executable} could not make a virtual environment; its words are in {log}."
            " Try another Python: make lab PYTHON=/path/to/python3.12"
        )


def fetch_models(request: Request) -> None:
    """Fetch the real weights; without them the lesson shows its stored example."""
    command = [str(request.python), "-m", "course_lib.pretrained.fetch", "minilm"]
    if subprocess.run(command, cwd=request.root, stdin=subprocess.DEVNULL).returncode:
        print(
            "The weights of MiniLM are not here yet: lesson 00 shows a stored example until"
            " `make models` succeeds.",
            flush=True,
        )

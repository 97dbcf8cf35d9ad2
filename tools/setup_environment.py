"""Make .venv ready for the course: `setup_environment.py lab`, or `dev` for the tests too.

The syntax of this file stays so plain that Python 2 reads it: a Python that is too old can then
say so in one line. What it does next stands in the folder `environment` beside it.
"""

from __future__ import print_function

import os
import subprocess
import sys

OLDEST = (3, 10)
NEWEST = (3, 13)
NEEDED = "Python %d.%d to %d.%d" % (OLDEST + NEWEST)


def suits(version):
    """True if the course runs on this (major, minor, ...) version."""
    return OLDEST <= tuple(version[:2]) <= NEWEST


def version_of(command):
    """The (major, minor) that a command reports, None if it does not run.

    A command that exists proves nothing: a version manager's stand-in may only print an error.
    """
    question = "import sys; print('%d %d' % sys.version_info[:2])"
    with open(os.devnull, "w") as nowhere:
        try:
            answer = subprocess.check_output([command, "-c", question], stderr=nowhere)
        except (OSError, subprocess.CalledProcessError):
            return None
    return tuple(int(number) for number in answer.split())


def find_another():
    """The newest command pythonX.Y of the needed range that runs, or None."""
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        command = "python%d.%d" % (NEWEST[0], minor)
        if suits(version_of(command) or (0, 0)):
            return command
    return None


def main(arguments):
    """Check the Python, hand over to one that fits, else say in one line what is missing."""
    if os.name == "nt":
        print("On Windows, use the three lines of README.md instead of make.", file=sys.stderr)
        return 1
    if suits(sys.version_info):
        from environment.prepare import main as prepare

        return prepare(arguments)

    this = "Python %d.%d" % tuple(sys.version_info[:2])
    other = None if os.environ.get("PYTHON") else find_another()
    if other is None:
        print(
            "%s is %s, and the course needs %s. Install one of these (python.org/downloads) and"
            " name it: make lab PYTHON=/path/to/python3.%d"
            % (sys.executable, this, NEEDED, NEWEST[1] - 1),
            file=sys.stderr,
        )
        return 1
    print("python3 is %s, and the course needs %s: using %s." % (this, NEEDED, other))
    sys.stdout.flush()
    os.execvp(other, [other, os.path.abspath(__file__)] + arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

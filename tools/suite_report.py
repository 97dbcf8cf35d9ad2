"""A pytest plugin: what each part of the suite took, and what was not run and why."""

import collections
from pathlib import Path

import pytest


class SuiteReport:
    """Sum the time of each folder below tests, and collect the reasons of skipped tests."""

    def __init__(self, timed: dict[str, float]):
        self.seconds = collections.Counter(timed)
        self.tests = collections.Counter()
        self.reasons = collections.Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        part = part_of(report.nodeid)
        self.seconds[part] += report.duration
        if report.when == "call" or report.skipped:
            self.tests[part] += 1
        if report.skipped and isinstance(report.longrepr, tuple):
            self.reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1

    def pytest_terminal_summary(self, terminalreporter) -> None:
        terminalreporter.section("what each part took")
        for part, seconds in self.seconds.items():
            tests = f"{self.tests[part]} tests" if self.tests[part] else ""
            terminalreporter.line(f"{part:20s} {seconds:7.1f} s  {tests}")
        for reason, count in self.reasons.items():
            terminalreporter.line(f"NOT RUN: {count} tests ({reason})")


def part_of(nodeid: str) -> str:
    """The folder below tests; doctests and the lane on Colab's versions are parts of their own.

    >>> part_of("tests/browser/test_keys.py::test_a_key_moves_the_cell")
    'browser'
    >>> part_of("tests/notebooks/test_colab.py::test_a_lesson_runs")
    'colab'
    >>> part_of("course_lib/transformer/attention.py::course_lib.transformer.attention")
    'doctests'
    """
    path = Path(nodeid.partition("::")[0])
    if "colab" in path.stem:
        return "colab"
    if path.parts[0] != "tests":
        return "doctests"
    return path.parts[1] if len(path.parts) > 2 else path.stem

"""The summary of the suite says what each part took and what it did not run."""

import subprocess
import sys

SUITE = {
    "tests/alpha/test_a.py": "def test_it_holds():\n    assert True\n",
    "tests/browser/test_b.py": (
        "import pytest\n\n@pytest.mark.skip(reason='Chromium is missing')\n"
        "def test_one():\n    pass\n\n@pytest.mark.skip(reason='Chromium is missing')\n"
        "def test_two():\n    pass\n"
    ),
    "tests/notebooks/test_colab_lane.py": "def test_it_runs():\n    assert True\n",
}


def test_parts_are_timed_and_skipped_tests_are_named_with_their_reason(root, tmp_path):
    for name, text in SUITE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    code = (
        f"import sys; sys.path.insert(0, {str(root / 'tools')!r}); import pytest, suite_report;"
        "sys.exit(pytest.main(['-p', 'no:cacheprovider', 'tests'],"
        " plugins=[suite_report.SuiteReport({'lint': 1.5})]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    table = done.stdout.partition("what each part took")[2]
    rows = {line.split()[0]: line for line in table.splitlines() if " s  " in line}
    assert list(rows) == ["lint", "alpha", "browser", "colab"]
    assert "1.5 s" in rows["lint"]
    assert "2 tests" in rows["browser"] and "1 tests" in rows["colab"]
    assert "NOT RUN: 2 tests (Chromium is missing)" in table

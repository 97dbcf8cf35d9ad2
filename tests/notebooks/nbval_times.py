"""A plugin beside nbval: a cell that ran to its time limit fails, whatever it did with it.

At the limit nbval interrupts the kernel. A cell that catches the interrupt ends without an
error, and nbval would let it pass.
"""

import time

import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    start = time.monotonic()
    outcome = yield
    limit = item.config.getoption("nbval_cell_timeout", None)
    if type(item).__name__ != "IPyNbCell" or limit is None or outcome.excinfo is not None:
        return
    if time.monotonic() - start >= float(limit):
        error = RuntimeError(f"the cell ran into the time limit of {limit} s and hid it")
        outcome.force_exception(error)

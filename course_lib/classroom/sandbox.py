"""Run a learner's code in a thread of its own: it can hang, print and break, and harms nobody."""

import ctypes
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import torch

from course_lib.classroom.sandbox_memory import MemoryWatch, allowance, limited_address_space
from course_lib.classroom.sandbox_output import Capture, Printed
from course_lib.classroom.sandbox_state import kept_state

TIME_LIMIT = 5.0  # seconds that one call may take
IMPORT_LIMIT = 60.0  # seconds that a call may take where it is loading a library
GRACE = 2.0  # seconds in which a call that was told to stop may do so
_STACK = 64 * 2**20  # bytes; a thread's usual stack is small on some systems
_ONE_AT_A_TIME = threading.Lock()  # random states, stdout and memory belong to the whole process


class Stopped(BaseException):
    """Raised inside a learner's code by the sandbox, never by the code itself."""


@dataclass
class Run:
    """What came of the calls: those that ended, and why the rest did not."""

    results: list = field(default_factory=list)
    stopped: str = ""  # "", "time", "stuck" (time, and it could not be ended) or "memory"
    time_limit: float = TIME_LIMIT
    memory_limit: int = 0
    printed: Printed = field(default_factory=Printed)
    notes: list[str] = field(default_factory=list)


class _Worker(threading.Thread):
    def __init__(self, calls: Sequence[Callable], results: list):
        super().__init__(name="check", daemon=True)
        self.calls, self.results = calls, results
        self.began = time.monotonic()

    def run(self):
        try:
            for call in self.calls:
                self.began = time.monotonic()
                with torch.inference_mode(False), torch.enable_grad():
                    self.results.append(call())
        except Stopped:
            pass

    def runs(self) -> bool:
        """Whether it has a frame still.

        ``is_alive`` can be wrong: Thread.join, interrupted by Ctrl-C, takes a running thread for
        an ended one (Python 3.10 and 3.11), and it would never be stopped.
        """
        return self.ident in sys._current_frames()

    def is_importing(self) -> bool:
        """Whether it is loading a module: cut short, a library would stay broken for everybody."""
        frame = sys._current_frames().get(self.ident)
        while frame is not None:
            if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
                return True
            frame = frame.f_back
        return False


def run_each(calls: Sequence[Callable], time_limit: float | None = None) -> Run:
    """Run the calls one after the other in one thread, each within a time limit.

    A call catches its own exceptions; only ``Stopped`` may leave it. Works from any thread. An
    interrupt by the user ends the calls and passes through.

    >>> run_each([lambda: 1, lambda: 2]).results
    [1, 2]
    """
    if isinstance(threading.current_thread(), _Worker):
        raise RuntimeError("a check was started by the very function that is being checked")
    run = Run(time_limit=TIME_LIMIT if time_limit is None else time_limit)
    with _ONE_AT_A_TIME, ExitStack() as stack:
        worker = _Worker(calls, run.results)
        run.memory_limit = allowance()
        watch = MemoryWatch(run.memory_limit)
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(kept_state(run.notes))
        capture = Capture(worker, run.printed)
        try:
            _start(worker)
            with limited_address_space(run.memory_limit):
                run.stopped = _wait(worker, run.time_limit, watch)
        finally:
            if worker.runs():
                _stop(worker)
            if worker.runs():
                run.stopped = "stuck"  # its prints stay diverted
            elif capture.end():
                run.notes.append("Your code replaced `sys.stdout` or `sys.stderr`; they are back.")
    return run


def _start(worker: _Worker) -> None:
    before = threading.stack_size(_STACK)
    try:
        worker.start()
    finally:
        threading.stack_size(before)


def _wait(worker: _Worker, time_limit: float, watch: MemoryWatch) -> str:
    call, extra = worker.began, 0.0
    while True:
        worker.join(0.02)
        if not worker.runs():
            return ""
        if watch.is_exceeded():
            return "memory"
        if worker.began != call:
            call, extra = worker.began, 0.0
        elapsed = time.monotonic() - call
        if elapsed > time_limit + extra:
            if elapsed > IMPORT_LIMIT or not worker.is_importing():
                return "time"
            extra = elapsed  # after the import the call has its own time again


def _stop(worker: _Worker) -> None:
    """Raise ``Stopped`` inside the worker, again and again: a bare except swallows some."""
    end = time.monotonic() + GRACE
    report = sys.unraisablehook
    # It may strike inside a destructor, where Python can only print it.
    sys.unraisablehook = lambda lost: None if lost.exc_type is Stopped else report(lost)
    try:
        while worker.runs() and time.monotonic() < end:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(worker.ident), ctypes.py_object(Stopped)
            )
            time.sleep(0.01)
    finally:
        sys.unraisablehook = report

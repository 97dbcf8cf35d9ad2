"""What learners' code does to a check: a sentence each, and everything as it was."""

import os
import random
import sys
import threading
import time
import traceback

import numpy as np
import pytest
import torch

from course_lib.classroom import EXERCISES

MASK, LOOKUP = EXERCISES["causal_mask"], EXERCISES["soft_lookup"]
RIGHT = MASK.reference


def judge(fn, exercise=MASK, **more):
    return exercise.judge(fn, **more)


def endless(n):
    while True:
        pass


ENOUGH = threading.Event()


def endless_and_stubborn(n):
    while not ENOUGH.is_set():
        try:
            while not ENOUGH.is_set():
                pass
        except BaseException:
            pass


def sleepy(n):
    time.sleep(60)


def deep(n):
    return deep(n)


def leaves(n):
    sys.exit(3)


def interrupts(n):
    raise KeyboardInterrupt


def huge(n):
    return torch.ones(50 * 2**30, dtype=torch.uint8).bool()


def growing(n):
    kept = []
    while True:
        kept.append(bytearray(50 * 2**20))


def generator(n):
    yield RIGHT(n)


def typo(n):
    return torhc.ones(n, n)  # noqa: F821


def wrong_shapes(query, keys, values):
    return keys.T @ query @ values


SAID = [
    (endless, "after 0.3 seconds, so the call was ended"),
    (deep, "The function calls itself and never comes to an end"),
    (leaves, "asked Python to end"),
    (interrupts, "raised an interrupt itself"),
    (generator, "a generator"),
    (typo, "return torhc.ones(n, n)"),
    (lambda n: print(n), "is a `return` missing?"),
    (lambda n: "mask", "a str, expected a torch tensor"),
    (lambda n: np.tril(np.ones((n, n), dtype=bool)), "numpy.ndarray, expected a torch tensor"),
    (lambda n: torch.nn.Parameter(torch.ones(n, n)), "a Parameter, a special kind of tensor"),
    (lambda n: torch.ones(n, n, dtype=torch.bool, device="meta"), "device"),
    (lambda: RIGHT(3), "takes 0 positional arguments"),
]


@pytest.mark.parametrize(("fn", "said"), SAID, ids=[str(i) for i in range(len(SAID))])
def test_it_gets_a_clear_sentence(fn, said):
    verdict = judge(fn, time_limit=0.3 if fn is endless else 5)
    assert not verdict.passed and said in verdict.feedback, verdict.feedback


def test_what_cannot_be_ended_is_left_behind_and_said():
    verdict = judge(sleepy, time_limit=0.2)
    assert "could not be ended" in verdict.feedback
    verdict = judge(endless_and_stubborn, time_limit=0.2)
    assert not verdict.passed and "0.2 seconds" in verdict.feedback
    assert judge(RIGHT).passed
    ENOUGH.set()  # else it would take its share of every later test's time


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
@pytest.mark.parametrize("fn", [huge, growing])
def test_a_huge_allocation_is_refused_and_the_kernel_lives(fn):
    verdict = judge(fn, time_limit=120)  # long: a busy machine grows a list slowly
    assert not verdict.passed and "memory" in verdict.feedback
    assert judge(RIGHT).passed


def test_a_shape_error_names_the_shapes_and_the_learners_line():
    verdict = judge(wrong_shapes, LOOKUP)
    assert "return keys.T @ query @ values" in verdict.feedback
    assert "query (3,), keys (5, 3), values (5, 2)" in verdict.feedback


def test_an_unsolved_part_is_not_attempted_yet():
    def causal_mask(n):
        """Return the mask."""
        ...

    for stub in (causal_mask, lambda n: ..., lambda n: None):
        verdict = judge(stub)
        if stub is causal_mask:
            assert not verdict.attempted and "Not attempted yet" in verdict.feedback
        assert not verdict.passed


def test_something_that_is_no_function_is_refused():
    assert "expected the function itself" in judge(RIGHT(3)).feedback


def test_the_random_states_are_put_back_and_a_pass_says_so():
    def seeds(n):
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)
        return RIGHT(n)

    torch.manual_seed(5), random.seed(5), np.random.seed(5)
    expected = torch.rand(3), random.random(), np.random.rand()
    torch.manual_seed(5), random.seed(5), np.random.seed(5)
    verdict = judge(seeds)
    assert verdict.passed and "random state" in verdict.feedback
    assert torch.equal(torch.rand(3), expected[0])
    assert (random.random(), np.random.rand()) == expected[1:]


def test_torchs_settings_and_functions_are_put_back():
    softmax, dtype, threads = torch.softmax, torch.get_default_dtype(), torch.get_num_threads()

    def breaks(n):
        torch.softmax = lambda *a, **k: None
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(threads + 1)
        sys.setrecursionlimit(500)
        return RIGHT(n)

    depth = sys.getrecursionlimit()
    verdict = judge(breaks)
    assert torch.softmax is softmax and "replaced `torch.softmax`" in verdict.feedback
    assert torch.get_default_dtype() == dtype and torch.get_num_threads() == threads
    assert sys.getrecursionlimit() == depth


def test_thousands_of_printed_lines_become_a_few(capsys):
    def chatty(n):
        for i in range(20_000):
            print("line", i)
        return RIGHT(n)

    verdict = judge(chatty)
    assert verdict.passed and "your code printed" in verdict.feedback
    assert len(verdict.feedback) < 2000
    assert capsys.readouterr().out == ""


def test_a_changed_argument_is_a_mistake():
    def writes(query, keys, values):
        keys *= 2
        return torch.softmax(keys / 2 @ query, 0) @ values

    verdict = judge(writes, LOOKUP)
    assert not verdict.passed and "changed its argument `keys` in place" in verdict.feedback


def test_a_check_works_from_another_thread():
    found = []
    thread = threading.Thread(target=lambda: found.extend([
        judge(RIGHT), judge(endless, time_limit=0.2)]))  # fmt: skip
    thread.start()
    thread.join(20)
    assert [verdict.passed for verdict in found] == [True, False]


def running_checks():
    """The frames of all threads but this one."""
    return [f for i, f in sys._current_frames().items() if i != threading.get_ident()]


def test_a_users_own_interrupt_passes_through():
    import signal

    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        judge(endless, time_limit=30)
    assert judge(RIGHT).passed
    assert not any("endless" in str(traceback.extract_stack(f)) for f in running_checks())


def test_a_model_under_no_grad_is_judged_all_the_same():
    with torch.no_grad():
        assert (
            EXERCISES["scaled_dot_product_attention"]
            .judge(EXERCISES["scaled_dot_product_attention"].reference)
            .passed
        )

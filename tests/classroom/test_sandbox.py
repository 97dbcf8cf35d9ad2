"""What learners' code does to a check: a sentence each, and everything as it was."""

import os
import random
import sys
import threading
import time
import traceback

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
import torch
from nbclient import NotebookClient

from course_lib.classroom import EXERCISES
from course_lib.classroom.learner_file import FILE, run_file, save_part
from course_lib.classroom.sandbox_settings import SETTINGS, read_settings

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


def test_loading_a_library_is_not_cut_short(tmp_path, monkeypatch):
    (tmp_path / "slow_to_load.py").write_text(
        "import time\nend = time.monotonic() + 1\n"
        "while time.monotonic() < end:\n    pass\nwhole = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def loads(n):
        import slow_to_load

        return RIGHT(n) if slow_to_load.whole else None

    def loads_and_never_ends(n):
        loads(n)
        return endless(n)

    assert judge(loads, time_limit=0.2).passed
    del sys.modules["slow_to_load"]
    assert "0.2 seconds" in judge(loads_and_never_ends, time_limit=0.2).feedback
    assert sys.modules.pop("slow_to_load").whole


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


def test_torchs_functions_are_put_back():
    softmax = torch.softmax

    def breaks(n):
        torch.softmax = lambda *a, **k: None
        return RIGHT(n)

    verdict = judge(breaks)
    assert torch.softmax is softmax and "replaced `torch.softmax`" in verdict.feedback


CHANGES = {
    "default dtype": lambda: torch.set_default_dtype(torch.float64),
    "threads": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "recursion limit": lambda: sys.setrecursionlimit(500),
    "how torch prints": lambda: torch.set_printoptions(precision=1, sci_mode=True),
    "how numpy prints": lambda: np.set_printoptions(precision=1, suppress=True),
    "deterministic": lambda: torch.use_deterministic_algorithms(True, warn_only=True),
    "anomalies": lambda: torch.autograd.set_detect_anomaly(True),
    "figures": lambda: plt.figure(),
    "default device": lambda: torch.set_default_device("meta"),
    "recording of gradients": lambda: torch.set_grad_enabled(False),
}
# Each thread has its own of these, in most versions; the check's own thread ends with the check.
OF_ONE_THREAD = {"default device", "recording of gradients", "threads", "how numpy prints"}


@pytest.mark.parametrize("name", CHANGES)
def test_a_setting_is_put_back_and_the_verdict_says_so(name):
    def changes(n):
        mask = RIGHT(n)
        CHANGES[name]()
        return mask

    before = read_settings()
    verdict = judge(changes)
    assert read_settings() == before
    assert name in verdict.feedback or name in OF_ONE_THREAD


def test_every_setting_that_is_kept_is_changed_by_a_test():
    assert len(CHANGES) == len(SETTINGS)
    for name in CHANGES:
        assert sum(name in setting.said for setting in SETTINGS) == 1


@pytest.mark.parametrize("name", CHANGES)
def test_the_learners_file_changes_no_setting_of_the_notebook(name, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_FOLDER", str(tmp_path))
    (tmp_path / FILE).write_text("from tests.classroom.test_sandbox import CHANGES\n"
                                 f"CHANGES[{name!r}]()\n")  # fmt: skip
    before = read_settings()
    run_file()
    assert read_settings() == before


def test_a_learners_file_that_exits_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_FOLDER", str(tmp_path))
    (tmp_path / FILE).write_text("import sys\nsys.exit(3)\n")
    assert "raises SystemExit" in save_part("causal_mask", "def causal_mask(n):\n    return n")


IN_A_KERNEL = """
import torch
from IPython.display import clear_output, display, HTML
from course_lib.classroom import EXERCISES
import matplotlib.pyplot as plt
plt.plot([1, 2])
def causal_mask(n):
    clear_output()
    display(torch.ones(n), HTML("<b>bold</b>"))
    print("a printed line")
    plt.figure()
    plt.plot([1, 2, 3])
    plt.show()
    return torch.ones(n, n, dtype=torch.bool).tril()
verdict = EXERCISES["causal_mask"].judge(causal_mask)
display("shown afterwards")
assert verdict.passed
assert "tensor([1., 1." in verdict.feedback and "a printed line" in verdict.feedback
assert "HTML object" in verdict.feedback and "<b>" not in verdict.feedback
plt.close("all")
"""


def test_nothing_that_a_checked_function_displays_reaches_the_page():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(IN_A_KERNEL)])
    NotebookClient(notebook, timeout=120).execute()
    # Without stderr: matplotlib says there that it builds its font cache, once on a machine.
    outputs = [o for o in notebook.cells[0].outputs if o.get("name") != "stderr"]
    shown = [(o.output_type, o.get("data", {}).get("text/plain")) for o in outputs]
    assert shown == [("display_data", "'shown afterwards'")]


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

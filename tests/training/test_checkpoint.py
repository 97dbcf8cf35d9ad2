"""A run kept in a file: taken up again as if it had never stopped, and never half written."""

import itertools
import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from course_lib.training.checkpoint import CheckpointError
from course_lib.training.loop import fit


def build(d_hidden=5):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, d_hidden), nn.Dropout(0.3), nn.Linear(d_hidden, 1))


def batches():
    dice = torch.Generator().manual_seed(1)
    while True:
        yield torch.randn(7, 3, generator=dice)


def loss(model, x):
    return (model(x) - x.sum(-1, keepdim=True)).square().mean()


def measure(model):
    x = torch.randn(13, 3, generator=torch.Generator().manual_seed(2))
    return -loss(model, x).item()


def train(model, steps, path=None, **more):
    torch.manual_seed(3)
    options = {"steps": steps, "every": 5, "evaluate": measure, "schedule": lambda s: 0.1 / s}
    return fit(model, batches(), loss, checkpoint=path, **options, **more)


def test_a_run_taken_up_again_equals_one_that_never_stopped(tmp_path):
    whole, halves = build(), build()
    once = train(whole, 20)
    train(halves, 10, tmp_path / "run.safetensors")
    fresh = build()
    again = train(fresh, 20, tmp_path / "run.safetensors")
    assert again.losses == once.losses and again.evaluations == once.evaluations
    for mine, other in zip(fresh.state_dict().values(), whole.state_dict().values(), strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=0)


def test_an_interrupted_run_can_be_taken_up(tmp_path):
    def stop(history, steps):
        if len(history.losses) == 8 and not history.ended:
            raise KeyboardInterrupt

    path = tmp_path / "run.safetensors"
    first = train(build(), 20, path, watch=stop)
    assert first.ended == "interrupted after 8 steps"
    again, whole = train(build(), 20, path), train(build(), 20)
    assert again.losses == whole.losses and again.ended == "all 20 steps done"


def test_a_finished_run_is_not_trained_further_and_keeps_its_best(tmp_path):
    path = tmp_path / "run.safetensors"
    first, second = build(), build()
    history = train(first, 10, path)
    again = train(second, 10, path)
    assert again.losses == history.losses and again.ended == "all 10 steps done"
    assert measure(second) == measure(first) == max(value for _, value in history.evaluations)


def test_a_checkpoint_of_other_shapes_is_refused_with_both(tmp_path):
    train(build(), 5, tmp_path / "run.safetensors")
    with pytest.raises(CheckpointError, match=r"`0\.bias` is \(5,\) in the .* \(7,\) in the model"):
        train(build(7), 10, tmp_path / "run.safetensors")
    with pytest.raises(CheckpointError, match=r"the model has no `2\.bias`"):
        train(nn.Sequential(nn.Linear(3, 5)), 10, tmp_path / "run.safetensors")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "can't be read as a checkpoint"),
        (b"no safetensors at all", "can't be read as a checkpoint"),
        (None, "is no checkpoint of a training run: its format is None"),
    ],
)
def test_another_file_is_refused_and_left_alone(tmp_path, content, said):
    path = tmp_path / "run.safetensors"
    if content is None:
        save_file({"x": torch.ones(2)}, path)
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=said):
        train(build(), 5, path)
    assert path.read_bytes() == before


def test_a_missing_folder_is_told_before_the_training(tmp_path):
    with pytest.raises(CheckpointError, match=r"make the folder .*nowhere first"):
        train(build(), 5, tmp_path / "nowhere" / "run.safetensors")


def test_a_run_killed_at_any_moment_leaves_a_whole_checkpoint(tmp_path):
    """Killed without warning while it does nothing but write: the file still loads."""
    code = """
import sys, torch
from torch import nn
from course_lib.training.loop import fit
model = nn.Linear(300, 300)
def watch(history, steps):
    print(len(history.losses), flush=True)
fit(model, iter(lambda: torch.ones(2, 300), None), lambda m, x: m(x).square().mean(),
    steps=10**6, every=1, watch=watch, checkpoint=sys.argv[1])
"""
    path = tmp_path / "run.safetensors"
    for lines in (3, 7, 11):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
        )
        for _ in itertools.islice(process.stdout, lines):
            pass
        process.kill()
        process.wait()
        process.stdout.close()
        model = nn.Linear(300, 300)
        history = fit(
            model, iter(lambda: torch.ones(2, 300), None), lambda m, x: m(x).square().mean(),
            steps=1, checkpoint=path,
        )  # fmt: skip
        assert len(history.losses) >= lines - 1

"""The lessons' own experiments, for tests over several seeds."""

from pathlib import Path

import nbformat
import pytest
import torch

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Small products on several threads wait for each other, on a busy machine for very long."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def claims():
    """Run the set-up and the cells tagged ``claim`` of a lesson; give what they define.

    The tests so repeat the lesson's very code. ``given`` stands for what checks would have made.
    """

    def run(number, **given):
        path = next(NOTEBOOKS.glob(f"{number}_*.ipynb"))
        space = dict(given)
        for cell in nbformat.read(path, 4).cells:
            if {"setup", "claim"} & set(cell.metadata.get("tags", [])):
                exec(compile(cell.source, f"{path.name}:{cell.id}", "exec"), space)
        return space

    return run

"""A module is checked with the library's weights, or told which of them it lacks."""

import linecache
import sys
import types

import pytest
import torch
from torch import nn

from course_lib.classroom import EXERCISES, check
from course_lib.classroom.source import source_of
from course_lib.transformer.heads import MultiHeadAttention
from course_lib.transformer.layers import EncoderLayer

ATTENTION = EXERCISES["MultiHeadAttention"]


def said_of(change, base=MultiHeadAttention, name="MultiHeadAttention"):
    """What is said of the library's module after ``change(module)`` in its constructor."""

    def build(self, *sizes):
        base.__init__(self, *sizes)
        change(self)

    version = type(base.__name__, (base,), {"__init__": build, "forward": base.forward})
    verdict = EXERCISES[name].judge(version)
    assert not verdict.passed and verdict.mistakes == ()
    return verdict.feedback


def rename(old, new):
    def change(module):
        setattr(module, new, getattr(module, old))
        delattr(module, old)

    return change


def test_a_misnamed_map_is_told_what_is_missing_and_what_is_there():
    said = said_of(rename("query", "w_q"))
    assert "`query.weight` and `query.bias` are missing" in said
    assert "`w_q.weight` and `w_q.bias` are not expected" in said


def test_a_map_without_bias_is_told_so():
    said = said_of(lambda module: setattr(module, "value", nn.Linear(6, 6, bias=False)))
    assert "`value.bias` is missing" in said and "nn.Linear" in said


def test_a_map_too_many_is_named():
    said = said_of(lambda module: setattr(module, "extra", nn.Linear(6, 6)))
    assert "parameters that the library's has not: `extra.weight` and `extra.bias`" in said


def test_a_map_of_another_size_is_told_both_shapes():
    said = said_of(lambda module: setattr(module, "key", nn.Linear(6, 3)))
    assert "`key.weight` has shape (3, 6), expected (6, 6)" in said


def test_maps_in_a_plain_list_are_no_parameters():
    class MultiHeadAttention(nn.Module):
        def __init__(self, d_model, n_heads):
            super().__init__()
            self.maps = [nn.Linear(d_model, d_model) for _ in range(4)]

        def forward(self, query, key, value, mask=None):
            return query, query

    assert "no parameters at all" in ATTENTION.judge(MultiHeadAttention).feedback


def test_a_frozen_parameter_is_noticed_by_its_gradient():
    said = said_of(lambda module: module.query.weight.requires_grad_(False))
    assert "no gradient reaches `query.weight`" in said


def test_a_forgotten_super_call_gets_the_remedy():
    class MultiHeadAttention(nn.Module):
        def __init__(self, d_model, n_heads):
            self.query = nn.Linear(d_model, d_model)

        def forward(self, query, key, value, mask=None):
            return query, query

    assert "super().__init__()" in ATTENTION.judge(MultiHeadAttention).feedback


def test_a_class_that_is_no_module_is_told_so():
    class MultiHeadAttention:
        def __init__(self, d_model, n_heads):
            self.n_heads = n_heads

        def forward(self, query, key, value, mask=None):
            return query, query

    assert "class MultiHeadAttention(nn.Module)" in ATTENTION.judge(MultiHeadAttention).feedback


def test_a_layer_with_dropout_is_told_that_it_draws_random_numbers():
    class Dropping(EncoderLayer):
        def __init__(self, *sizes):
            super().__init__(*sizes, dropout=0.5)

        def forward(self, x, mask=None):
            return EncoderLayer.forward(self, x, mask)

    verdict = EXERCISES["EncoderLayer"].judge(Dropping)
    assert not verdict.passed and "random numbers" in verdict.feedback


def test_an_unsolved_class_is_not_attempted():
    class MultiHeadAttention(nn.Module):
        def __init__(self, d_model, n_heads):
            super().__init__()

        def forward(self, query, key, value, mask=None): ...

    verdict = ATTENTION.judge(MultiHeadAttention)
    assert not verdict.attempted and "Not attempted yet" in verdict.feedback


def test_a_built_module_is_asked_for_its_class(capsys):
    check(MultiHeadAttention(6, 2))
    assert "write `check(MultiHeadAttention)`" in capsys.readouterr().out


CELL = """import torch
from torch import nn
from course_lib.transformer.attention import scaled_dot_product_attention as attend
from course_lib.transformer.heads import merge_heads

SIZE = 1

def split_heads(x, n):
    return torch.stack(x.chunk(n, dim=-1), dim=SIZE)

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        maps = (nn.Linear(d_model, d_model) for _ in range(4))
        self.query, self.key, self.value, self.output = maps

    def forward(self, query, key, value, mask=None):
        q = split_heads(self.query(query), self.n_heads)
        k = split_heads(self.key(key), self.n_heads)
        v = split_heads(self.value(value), self.n_heads)
        z, weights = attend(q, k, v, mask)
        return self.output(merge_heads(z)), weights
"""


@pytest.fixture
def cell(monkeypatch):
    """A class as a notebook's kernel makes it: in no file, with its lines in linecache."""
    name = "a cell of a notebook"
    monkeypatch.setitem(
        linecache.cache, name, (len(CELL), None, CELL.splitlines(keepends=True), name)
    )
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    exec(compile(CELL, name, "exec"), main.__dict__)
    return main.MultiHeadAttention


def test_the_source_of_a_class_in_a_cell_is_found(cell):
    assert source_of(cell) == CELL[CELL.index("class") :].strip()


def test_a_class_without_source_says_so():
    space = {"__name__": "__main__"}
    exec("class Bare: pass", space)
    with pytest.raises(OSError):
        source_of(space["Bare"])


def test_a_right_module_is_saved_with_what_it_needs_and_runs_by_itself(
    cell, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("COURSE_FOLDER", str(tmp_path))
    assert check(cell) is cell, capsys.readouterr().out
    saved = (tmp_path / "my_transformer.py").read_text()
    assert "course_lib" not in saved
    space = {"__name__": "mine"}
    exec(compile(saved, "my_transformer.py", "exec"), space)
    mine, right = space["MultiHeadAttention"](6, 2), MultiHeadAttention(6, 2)
    mine.load_state_dict(right.state_dict())
    x = torch.randn(2, 3, 6)
    for yours, reference in zip(mine(x, x, x), right(x, x, x), strict=True):
        torch.testing.assert_close(yours, reference)

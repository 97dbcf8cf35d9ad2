"""A model put together from the learner's file: whose each part is, and that it computes."""

import inspect

import pytest
import torch

from course_lib.classroom import EXERCISES
from course_lib.classroom.assembly import USED, assemble
from course_lib.classroom.learner_file import learner_file, run_file, save_part
from course_lib.transformer.encoder_decoder import Config, Transformer

CONFIG = Config(n_vocab=11, n_layers=2, d_model=6, d_ff=7, n_heads=2, dropout=0.0)
IDS = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]])
OWN_ATTENTION = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.query, self.key, self.value, self.output = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )

    def forward(self, query, key, value, mask=None):
        called.append(query.shape)
        q, k, v = (
            m(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for m, x in ((self.query, query), (self.key, key), (self.value, value))
        )
        scores = q @ k.mT / q.size(-1) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e30)
        weights = scores.softmax(-1)
        return self.output((weights @ v).transpose(1, 2).flatten(2)), weights


called = []
"""
OWN_LAYER = """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        z, _ = self.self_attention(x, x, x, mask)
        x = self.norm1(x + z)
        return self.norm2(x + self.feed_forward(x))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_FOLDER", str(tmp_path))


def save(name, source, **more):
    from torch import nn

    said = save_part(name, source.strip(), {"nn": nn, "torch": torch, **more})
    assert "Saved" in said, said


def same_as_the_library(parts):
    torch.manual_seed(0)
    model = parts.Transformer(CONFIG)
    library = Transformer(CONFIG)
    library.load_state_dict(model.state_dict())
    mask = IDS != 0
    torch.testing.assert_close(model(IDS, IDS, mask, mask), library(IDS, IDS, mask, mask))
    memory, weights = model.encode(IDS, mask)
    their_memory, their_weights = library.encode(IDS, mask)
    torch.testing.assert_close(memory, their_memory)
    torch.testing.assert_close(weights, their_weights)


def test_without_a_file_every_part_is_the_librarys_and_named_so():
    parts = assemble()
    assert set(parts.origin) == set(USED) and set(parts.origin.values()) == {"the library's"}
    assert "EncoderLayer" in repr(parts) and "EncoderLayer" in parts._repr_html_()
    same_as_the_library(parts)


def test_the_librarys_layers_call_the_learners_attention():
    save("MultiHeadAttention", OWN_ATTENTION)
    parts = assemble()
    assert [n for n, whose in parts.origin.items() if whose == "yours"] == ["MultiHeadAttention"]
    same_as_the_library(parts)
    assert parts.MultiHeadAttention.__mro__[1].forward.__globals__["called"]


def test_a_learners_layer_hands_out_its_weights():
    from course_lib.transformer.heads import MultiHeadAttention
    from course_lib.transformer.layers import FeedForward

    save("EncoderLayer", OWN_LAYER, MultiHeadAttention=MultiHeadAttention, FeedForward=FeedForward)
    parts = assemble()
    assert parts.origin["EncoderLayer"] == "yours"
    same_as_the_library(parts)
    with pytest.raises(ValueError, match=r"dropout=0\.0 and norm_first=False, not 0\.1 and True"):
        parts.EncoderLayer(6, 2, 7, dropout=0.1, norm_first=True)


def test_a_part_passed_later_replaces_the_librarys_copy_in_other_parts():
    from course_lib.transformer.heads import MultiHeadAttention
    from course_lib.transformer.layers import FeedForward

    save("EncoderLayer", OWN_LAYER, MultiHeadAttention=MultiHeadAttention, FeedForward=FeedForward)
    assert learner_file().read_text().count("class MultiHeadAttention") == 1
    save("MultiHeadAttention", OWN_ATTENTION)
    assert learner_file().read_text().count("class MultiHeadAttention") == 1
    parts = assemble()
    layer = parts.EncoderLayer(6, 2, 7)
    layer(torch.ones(1, 3, 6))
    assert type(layer.self_attention).__mro__[1].forward.__globals__["called"]
    same_as_the_library(parts)


def test_every_part_by_the_librarys_own_source_makes_the_same_model():
    for name in USED:
        if name in EXERCISES:
            reference = EXERCISES[name].reference
            save(name, inspect.getsource(reference), **vars(inspect.getmodule(reference)))
    parts = assemble()
    assert all(whose == "yours" for name, whose in parts.origin.items() if name in EXERCISES)
    same_as_the_library(parts)


def test_a_file_that_does_not_run_is_told_and_the_library_stands_in():
    save("MultiHeadAttention", OWN_ATTENTION)
    learner_file().write_text(learner_file().read_text() + "\n1 / 0\n")
    parts = assemble()
    assert "ZeroDivisionError" in repr(parts) and "ZeroDivisionError" in parts._repr_html_()
    assert set(parts.origin.values()) == {"the library's"}
    same_as_the_library(parts)


def test_a_solution_that_does_not_fit_the_learners_other_parts_is_told():
    from course_lib.classroom.display import _misfits

    save("MultiHeadAttention", OWN_ATTENTION)
    layers = inspect.getmodule(EXERCISES["EncoderLayer"].reference)
    save("EncoderLayer", inspect.getsource(layers.EncoderLayer), **vars(layers))
    [said] = _misfits("EncoderLayer")
    assert "unexpected keyword argument 'need_weights'" in said and "check it again" in said
    same_as_the_library(assemble())


def test_own_attention_and_the_librarys_heads_fit_in_the_file():
    from course_lib.classroom.display import _misfits

    own = "def scaled_dot_product_attention(q, k, v, mask=None):\n    scores = q @ k.mT"
    own += " / q.size(-1) ** 0.5\n    if mask is not None:\n        scores = scores.masked_fill("
    own += "~mask, -torch.inf)\n    weights = scores.softmax(-1).nan_to_num(0.0)\n"
    own += "    return weights @ v, weights\n"
    save("scaled_dot_product_attention", own)
    heads = inspect.getmodule(EXERCISES["MultiHeadAttention"].reference)
    save("MultiHeadAttention", inspect.getsource(heads.MultiHeadAttention), **vars(heads))
    assert _misfits("MultiHeadAttention") == []
    same_as_the_library(assemble())


def test_a_part_built_on_assembled_ones_is_saved_whole():
    """What is not the learner's own comes with it, out of no module."""
    parts = assemble()
    source = """
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)

    def forward(self, x):
        return post_norm_sublayer(x, lambda y: self.self_attention(y, y, y)[0], torch.relu)
"""
    given = {"MultiHeadAttention": parts.MultiHeadAttention}
    save("DecoderLayer", source, post_norm_sublayer=parts.post_norm_sublayer, **given)
    layer = run_file()["DecoderLayer"](6, 2, 7)
    assert layer(torch.ones(1, 3, 6)).shape == (1, 3, 6)

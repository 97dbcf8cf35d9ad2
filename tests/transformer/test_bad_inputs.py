"""What does not fit is refused in one sentence with the numbers and the remedy, everywhere."""

import inspect
import re

import pytest
import torch

from course_lib.transformer import (
    attention,
    checks,
    encoder_decoder,
    heads,
    layers,
    leaks,
    positions,
    recurrent,
)
from course_lib.transformer.attention import causal_mask
from course_lib.transformer.encoder_decoder import Config, DecoderLayer, Transformer
from course_lib.transformer.heads import MultiHeadAttention
from course_lib.transformer.layers import EncoderLayer, FeedForward
from course_lib.transformer.positions import LearnedPositions
from course_lib.transformer.recurrent import (
    AdditiveAttention,
    RecurrentConfig,
    RecurrentEncoderDecoder,
)

MODULES = (attention, heads, layers, positions, encoder_decoder, recurrent, leaks)
B, T, S, D, V, F = 2, 3, 5, 6, 11, 7
ones, f64 = torch.ones, torch.float64


def ids(*shape, top=0):
    drawn = torch.zeros(*shape, dtype=torch.long)
    drawn[-1, -1] = top
    return drawn


def yes(*shape):
    return torch.ones(*shape, dtype=torch.bool)


def attend(fn):
    """What every attention refuses."""
    q, k, v = ones(B, T, D), ones(B, S, D), ones(B, S, F)
    return [
        (fn, (ones(B, T, 4), k, v), ["(2, 3, 4)", "(2, 5, 6)", "4 and 6"]),
        (fn, (q, k, ones(B, T, F)), ["(2, 5, 6)", "(2, 3, 7)", "5 and 3"]),
        (fn, (ones(3, T, D), k, v), ["(3, 3, 6)", "(2, 5, 6)"]),
        (fn, (ones(D), k, v), ["q (6,)", "(..., T, K)"]),
        (fn, (q.double(), k, v), ["torch.float64", "torch.float32", "k.to(q.dtype)"]),
        (fn, (q, k, v.half()), ["torch.float32", "torch.float16"]),
        (fn, (q.long(), k, v), ["torch.int64", ".float()"]),
        (fn, (q, k, v, ones(T, S)), ["torch.float32", "torch.bool", "mask == 1"]),
        (fn, (q, k, v, yes(S, T)), ["(5, 3)", "(2, 3, 5)"]),
        (fn, ([[1.0]], k, v), ["q is a list", "torch.tensor"]),
    ]


mha = MultiHeadAttention(D, 2)
encoder, decoder = EncoderLayer(D, 2, F), DecoderLayer(D, 2, F)
pre_encoder = EncoderLayer(D, 2, F, norm_first=True)
pre_decoder = DecoderLayer(D, 2, F, norm_first=True)
model = Transformer(Config(n_vocab=V, n_layers=1, d_model=D, d_ff=F, n_heads=2))
rnn = RecurrentEncoderDecoder(RecurrentConfig(n_vocab=V, d_model=D, attention=True))
additive = AdditiveAttention(D)
x, memory = ones(B, T, D), ones(B, S, D)
w = ones(D, D)

BAD = [
    *attend(attention.scaled_dot_product_attention),
    *attend(attention.fused_attention),
    *attend(lambda q, k, v, mask=None: attention.check_attention_inputs(q, k, v, mask)),
    (attention.row_softmax, (ids(T, S),), ["torch.int64", ".float()"]),
    (attention.row_softmax, (torch.tensor(1.0),), ["scores ()", "(..., S)"]),
    (attention.soft_lookup, (ones(3), ones(5, 4), ones(5, 2)), ["(3,)", "(5, 4)", "3 and 4"]),
    (attention.soft_lookup, (ones(3), ones(5, 3), ones(4, 2)), ["(5, 3)", "(4, 2)", "5 and 4"]),
    (attention.soft_lookup, (ones(3).double(), ones(5, 3), ones(5, 2)), ["torch.float64"]),
    (attention.causal_mask, (-1,), ["-1", "from 0 on"]),
    (attention.causal_mask, (2.5,), ["2.5", "integer"]),
    (attention.cached_causal_mask, (5, 3), ["5 queries", "3 keys"]),
    (attention.cached_causal_mask, (-1, 3), ["-1"]),
    (attention.padding_mask, (ones(B), 3), ["torch.float32", ".long()"]),
    (attention.padding_mask, (ids(B, 1), 3), ["(2, 1)", "(B)"]),
    (attention.padding_mask, ([1, 2], 3), ["list", "torch.tensor"]),
    (attention.padding_mask, (ids(1, B)[0], -3), ["-3"]),
    (attention.expand_key_mask, (yes(S),), ["(5,)", "(B, S)"]),
    (attention.expand_key_mask, (ones(B, S),), ["torch.float32", "torch.bool"]),
    (heads.split_heads, (x, 4), ["6", "4"]),
    (heads.split_heads, (ones(D), 2), ["(6,)", "(..., T, D)"]),
    (heads.merge_heads, (ones(T, D),), ["(3, 6)", "(..., H, T, K)"]),
    (heads.cross_attention, (x, memory, ones(4, D), w, w), ["(2, 3, 6)", "(4, 6)", "6 and 4"]),
    (heads.cross_attention, (x, ones(B, S, 4), w, w, w), ["(2, 3, 6)", "(2, 5, 4)", "6 and 4"]),
    (heads.cross_attention, (x, ones(3, S, D), w, w, w), ["(3, 5, 6)", "2 and 3"]),
    (heads.cross_attention, (x, memory, w, w, w.double()), ["torch.float64"]),
    (heads.cross_attention, (x, memory, w, w, w, yes(B, T)), ["mem_mask (2, 3)", "(2, 5)"]),
    (heads.cross_attention, (x, memory, w, w, w, ones(B, S)), ["mem_mask", "torch.bool"]),
    (mha, (ones(B, T, 4), memory, memory), ["(2, 3, 4)", "4", "6", "d_model=4"]),
    (mha, (x, ones(B, S, 4), memory), ["key (2, 5, 4)", "d_model=4"]),
    (mha, (x.double(), memory, memory), ["torch.float64", "torch.float32"]),
    (mha, (x, memory, memory, yes(S, T)), ["(5, 3)", "(2, 2, 3, 5)"]),
    (mha, (x, memory, memory, ones(T, S)), ["torch.float32", "torch.bool"]),
    (mha, (x, memory, x), ["5 and 3"]),
    (layers.layer_norm, (x, ones(5), ones(D), 1e-5), ["(2, 3, 6)", "(5,)", "6 and 5"]),
    (layers.layer_norm, (x, ones(D), ones(1), 1e-5), ["(1,)", "6 and 1"]),
    (layers.layer_norm, (x.double(), ones(D), ones(D), 1e-5), ["torch.float64"]),
    (layers.layer_norm, (x.long(), ones(D), ones(D), 1e-5), ["torch.int64", ".float()"]),
    (layers.position_wise_ffn, (x, ones(F, D), ones(F), ones(F, D), ones(D)), ["6 and 7"]),
    (layers.position_wise_ffn, (x, ones(D, F), ones(1), ones(F, D), ones(D)), ["7 and 1"]),
    (layers.position_wise_ffn, (x.half(), ones(D, F), ones(F), ones(F, D), ones(D)),
     ["torch.float16", "torch.float32"]),
    (layers.post_norm_sublayer, (x, lambda y: y[..., :4], layers.identity), ["(2, 3, 4)"]),
    (layers.pre_norm_sublayer, (x, lambda y: y[:, :1], layers.identity), ["(2, 1, 6)"]),
    (layers.pre_norm_sublayer, (x, lambda y: (y, y), layers.identity), ["tuple"]),
    (FeedForward(D, F), (ones(B, T, 4),), ["(2, 3, 4)", "d_model=4"]),
    (FeedForward(D, F), (x.double(),), ["torch.float64"]),
    *[(layer, (ones(B, T, 4),), ["(2, 3, 4)", "d_model=4"]) for layer in (encoder, pre_encoder)],
    *[(layer, (x.half(),), ["torch.float16"]) for layer in (encoder, pre_encoder)],
    (encoder, (x, yes(T, S)), ["(3, 5)", "(2, 2, 3, 3)"]),
    (encoder, (x, ones(T, T)), ["torch.float32", "torch.bool"]),
    *[(layer, (ones(B, T, 4), memory), ["x (2, 3, 4)"]) for layer in (decoder, pre_decoder)],
    *[(layer, (x, ones(B, S, 4)), ["memory (2, 5, 4)"]) for layer in (decoder, pre_decoder)],
    (decoder, (x, memory.double()), ["memory", "torch.float64"]),
    (decoder, (x, memory, causal_mask(S)), ["(5, 5)", "(2, 2, 3, 3)"]),
    (decoder, (x, memory, causal_mask(T), yes(T, T)), ["(3, 3)", "(2, 2, 3, 5)"]),
    (positions.sinusoidal_positions, (-1, 4), ["max_len is -1"]),
    (positions.sinusoidal_positions, (4, 2.0), ["d_model is 2.0", "integer"]),
    (positions.scaled_embedding, (ids(B, T, top=V), ones(V, D)), ["id 11", "11 rows", "0 to 10"]),
    (positions.scaled_embedding, (ids(B, T, top=-1), ones(V, D)), ["id -1", "0 to 10"]),
    (positions.scaled_embedding, (ones(B, T), ones(V, D)), ["torch.float32", ".long()"]),
    (positions.scaled_embedding, (ids(B, T), ones(V)), ["(11,)", "(V, D)"]),
    (LearnedPositions(4, D), (ones(B, 5, D),), ["5 positions", "max_len 4"]),
    (LearnedPositions(4, D), (ones(B, T, 4),), ["(2, 3, 4)", "d_model=4"]),
    (LearnedPositions(4, D), (ones(D),), ["(6,)", "(..., T, D)"]),
    (LearnedPositions(4, D), (x.double(),), ["torch.float64"]),
    (model, (ids(B, S, top=V), ids(B, T)), ["id 11", "0 to 10"]),
    (model, (ids(B, S), ids(B, T, top=-1)), ["id -1", "0 to 10"]),
    (model, (ones(B, S), ids(B, T)), ["torch.float32", ".long()"]),
    (model, (ids(1, S)[0], ids(B, T)), ["source (5,)", "(B, S)"]),
    (model, (ids(B, S), ids(1, T)[0]), ["target (3,)", "(B, T)"]),
    (model, (ids(B, S), ids(3, T)), ["3 and 2"]),
    (model, (ids(B, S), ids(B, T), yes(B, T)), ["source_mask (2, 3)", "(2, 5)"]),
    (model, (ids(B, S), ids(B, T), ones(B, S)), ["source_mask", "torch.bool"]),
    (model, (ids(B, S), ids(B, T), None, yes(B, S)), ["target_mask (2, 5)", "(2, 3)"]),
    (encoder_decoder.shift_right, (ids(1, T)[0], 1), ["(3,)", "(B, T)"]),
    (encoder_decoder.shift_right, (ones(B, T), 1), ["torch.float32", ".long()"]),
    (additive, (ones(B, T, 4), memory), ["6", "4"]),
    (additive, (x, ones(B, S, 4)), ["(2, 5, 4)"]),
    (additive, (ones(3, T, D), memory), ["3 and 2"]),
    (additive, (x, memory.double()), ["torch.float64"]),
    (additive, (x, memory, yes(B, T)), ["mask (2, 3)", "(2, 5)"]),
    (additive, (x, memory, ones(B, S)), ["torch.float32", "torch.bool"]),
    (rnn, (ids(B, S, top=V), ids(B, T)), ["id 11", "0 to 10"]),
    (rnn, (ids(B, S), ids(B, T, top=-1)), ["id -1", "0 to 10"]),
    (rnn, (ones(B, S), ids(B, T)), ["torch.float32", ".long()"]),
    (rnn, (ids(B, S), ids(3, T)), ["3 and 2"]),
    (rnn, (ids(B, S), ids(B, T), yes(B, T)), ["source_mask (2, 3)", "(2, 5)"]),
    (rnn, (ids(B, S), ids(B, T), ones(B, S)), ["torch.float32", "torch.bool"]),
    (rnn, (ids(1, S)[0], ids(B, T)), ["source (5,)", "(B, S)"]),
    (recurrent.join_directions, (ones(B, D),), ["(2, 6)", "(W, B, D)"]),
    (leaks.find_leak, (lambda y: y, ones(T)), ["(3,)", "(B, T)"]),
    (leaks.find_leak, (lambda y: y, ids(B, T)), ["torch.int64", "n_vocab"]),
    (leaks.find_leak, (lambda y: y, ids(B, T), 1), ["n_vocab 1"]),
]  # fmt: skip
NO_TENSORS = {
    "Config", "RecurrentConfig",  # sizes alone: their own tests
    "identity",  # takes anything
    "set_forget_bias",  # takes a module
    "check_attention_inputs",  # stands in the table as a lambda
}  # fmt: skip


@pytest.mark.parametrize(("part", "args", "named"), BAD, ids=[str(i) for i in range(len(BAD))])
def test_what_does_not_fit_is_one_sentence_with_the_numbers(part, args, named):
    with pytest.raises((ValueError, TypeError)) as error:
        part(*args)
    said = str(error.value)
    assert all(piece in said for piece in named), said
    assert "\n" not in said and len(said) < 200
    frames = [entry.path for entry in error.traceback]
    assert "course_lib" in str(frames[-1]), f"torch's own error: {said}"


def test_every_public_part_is_in_the_table():
    tried = {getattr(part, "__name__", type(part).__name__) for part, _, _ in BAD}
    public = {
        name
        for module in MODULES
        for name, part in vars(module).items()
        if not name.startswith("_") and getattr(part, "__module__", "") == module.__name__
        and (inspect.isfunction(part) or inspect.isclass(part))
    }  # fmt: skip
    assert public - NO_TENSORS <= tried


def test_the_sentences_of_the_checks_name_a_remedy():
    """Every sentence that they can say ends with what to do, after a semicolon or a colon."""
    source = inspect.getsource(checks)
    sentences = re.findall(r"raise \w+Error\((.*?)\n? *\)(?: from None)?\n", source, re.S)
    assert len(sentences) >= 12
    assert all(";" in text or ": True where" in text for text in sentences), sentences


def test_a_mask_on_the_right_shape_is_not_refused():
    q, k, v = ones(B, T, D), ones(B, S, D), ones(B, S, F)
    for shape in [(T, S), (1, S), (T, 1), (B, T, S), (B, 1, S), (1, 1, 1)]:
        attention.scaled_dot_product_attention(q, k, v, yes(*shape))

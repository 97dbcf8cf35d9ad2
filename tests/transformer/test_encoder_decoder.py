"""The 2017 model: counted, without leaks, and equal to torch's stacks weight for weight."""

import pytest
import torch
from torch import nn

from course_lib.transformer.attention import expand_key_mask, padding_mask
from course_lib.transformer.encoder_decoder import Config, DecoderLayer, Transformer, shift_right
from course_lib.transformer.leaks import find_leak

B, T, S, H, D, D_FF, V = 2, 5, 7, 3, 33, 13, 11
CONFIG = {"n_vocab": V, "n_layers": 2, "d_model": D, "d_ff": D_FF, "n_heads": H, "dropout": 0.0}
ORDERS = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])


def build(**changes):
    torch.manual_seed(0)
    model = Transformer(Config(**{**CONFIG, **changes}))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or "bias" in name:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def batch():
    torch.manual_seed(1)
    masks = padding_mask(torch.tensor([S, 3]), S), padding_mask(torch.tensor([4, T]), T)
    return torch.randint(V, (B, S)), torch.randint(V, (B, T)), *masks


def test_base_and_big_have_the_counts_of_the_course():
    assert Config.base().n_parameters() == 63_082_496
    assert Config.big().n_parameters() == 214_245_376


@ORDERS
def test_the_formula_counts_what_the_model_holds(norm_first):
    model = build(norm_first=norm_first)
    assert sum(p.numel() for p in model.parameters()) == model.config.n_parameters()
    with torch.device("meta"):
        base = Transformer(Config.base())
    assert sum(p.numel() for p in base.parameters()) == 63_082_496


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"n_heads": 2}, "33 .* 2"), ({"n_layers": 0}, "n_layers 0"), ({"dropout": 1.0}, "1.0")],
)
def test_sizes_that_cannot_be_are_refused_with_their_numbers(changes, named):
    with pytest.raises(ValueError, match=named):
        Config(**{**CONFIG, **changes})


def torchs_attention(prefix, module):
    maps = module.query, module.key, module.value
    return {
        f"{prefix}.in_proj_weight": torch.cat([m.weight for m in maps]),
        f"{prefix}.in_proj_bias": torch.cat([m.bias for m in maps]),
        f"{prefix}.out_proj.weight": module.output.weight,
        f"{prefix}.out_proj.bias": module.output.bias,
    }


def torchs_layer(layer):
    state = torchs_attention("self_attn", layer.self_attention)
    if isinstance(layer, DecoderLayer):
        state |= torchs_attention("multihead_attn", layer.cross_attention)
    for theirs, ours in (("linear1", "inner"), ("linear2", "outer")):
        for name, parameter in getattr(layer.feed_forward, ours).named_parameters():
            state[f"{theirs}.{name}"] = parameter
    state |= {name: p for name, p in layer.named_parameters() if name.startswith("norm")}
    return {name: p.detach() for name, p in state.items()}


def torchs_stacks(model):
    norm_first = model.config.norm_first
    how = {"dropout": 0.0, "batch_first": True, "norm_first": norm_first}
    # No norm at a post-norm stack's end, unlike nn.Transformer, which always adds one.
    ends = (model.encoder_norm, model.decoder_norm) if norm_first else (None, None)
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(D, H, D_FF, **how), 2, norm=ends[0], enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(D, H, D_FF, **how), 2, norm=ends[1])
    for theirs, ours in zip((*encoder.layers, *decoder.layers), (*model.encoder, *model.decoder),
                            strict=True):  # fmt: skip
        theirs.load_state_dict(torchs_layer(ours))
    return encoder, decoder


@ORDERS
def test_both_stacks_equal_torchs_in_values_and_gradients_under_masks(norm_first):
    model = build(norm_first=norm_first)
    encoder, decoder = torchs_stacks(model)
    source, target, source_real, target_real = batch()
    logits = model(source, target, source_real, target_real)
    memory = encoder(model.embed(source), src_key_padding_mask=~source_real)
    hidden = decoder(
        model.embed(target),
        memory,
        tgt_mask=torch.ones(T, T, dtype=torch.bool).triu(1),
        tgt_key_padding_mask=~target_real,
        memory_key_padding_mask=~source_real,
    )
    expected = hidden @ model.table.T
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)
    pull = torch.randn(logits.shape)
    first, last = model.encoder[0].feed_forward, model.decoder[-1].feed_forward
    mine = torch.autograd.grad(
        (logits * pull).sum(), (model.table, first.inner.weight, last.outer.weight)
    )
    reference = torch.autograd.grad(
        (expected * pull).sum(),
        (model.table, encoder.layers[0].linear1.weight, decoder.layers[-1].linear2.weight),
    )
    torch.testing.assert_close(mine, reference, atol=1e-4, rtol=1e-5)


@ORDERS
def test_weights_of_all_layers_come_with_the_masks_intact(norm_first):
    model = build(norm_first=norm_first)
    source, target, source_real, target_real = batch()
    memory, of_encoder = model.encode(source, source_real)
    logits, of_decoder = model.decode(target, memory, source_real, target_real)
    torch.testing.assert_close(logits, model(source, target, source_real, target_real))
    assert len(of_encoder) == len(of_decoder) == 2
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    for weights in of_encoder:
        assert weights.shape == (B, H, S, S)
        assert (weights.masked_select(~expand_key_mask(source_real)) == 0).all()
    for own, cross in of_decoder:
        assert (own.masked_select(future) == 0).all()
        assert (own.masked_select(~expand_key_mask(target_real)) == 0).all()
        assert cross.shape == (B, H, T, S)
        assert (cross.masked_select(~expand_key_mask(source_real)) == 0).all()


@ORDERS
def test_the_future_does_not_leak(norm_first):
    model = build(norm_first=norm_first).eval()
    source, target, source_real, _ = batch()
    assert find_leak(lambda y: model(source, y, source_real), target, n_vocab=V) is None


def test_the_detector_finds_a_leak_of_one_position():
    def leaky(y):
        out = y.cumsum(1).float()
        out[:, 2] += y[:, 4]
        return out

    assert find_leak(leaky, torch.zeros(B, T, dtype=torch.long), n_vocab=V) == (2, 4)


def test_dropout_acts_on_embeddings_and_sublayers_while_training_alone():
    model = build(dropout=0.5)
    source, target, *_ = batch()
    assert not torch.equal(model(source, target), model(source, target))
    model.eval()
    assert torch.equal(model(source, target), model(source, target))


def test_shift_right_moves_everything_one_step_and_leaves_the_target():
    target = torch.tensor([[5, 6, 7], [8, 9, 10]])
    assert shift_right(target, bos=1).tolist() == [[1, 5, 6], [1, 8, 9]]
    assert target.tolist() == [[5, 6, 7], [8, 9, 10]]

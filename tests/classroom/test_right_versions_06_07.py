"""Right ways to write the parts of lessons 06 and 07, other than the library's: all must pass."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.classroom import EXERCISES
from course_lib.classroom.exercises.greedy_versions import decoding
from course_lib.transformer.heads import MultiHeadAttention
from course_lib.transformer.layers import EncoderLayer, FeedForward, post_norm_sublayer


def padded_in_front(target, bos):
    return F.pad(target, (1, 0), value=bos)[:, :-1]


def rolled(target, bos):
    out = torch.roll(target, 1, dims=1)
    out[:, 0] = bos
    return out


def copied_into_a_new_one(target, bos):
    out = target.new_empty(target.shape)
    out[:, 0], out[:, 1:] = bos, target[:, :-1]
    return out


def row_by_row(target, bos):
    return torch.tensor([[bos, *row[:-1]] for row in target.tolist()], dtype=target.dtype)


class DecoderParts(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))


class InLines(DecoderParts):
    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x + self.self_attention(x, x, x, self_mask)[0])
        x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask)[0])
        return self.norm3(x + self.feed_forward(x))


class InSublayers(DecoderParts):
    def forward(self, x, memory, self_mask=None, memory_mask=None):
        def back(y):
            return self.self_attention(y, y, y, self_mask)[0]

        def across(y):
            return self.cross_attention(y, memory, memory, memory_mask)[0]

        for fn, norm in ((back, self.norm1), (across, self.norm2), (self.feed_forward, self.norm3)):
            x = post_norm_sublayer(x, fn, norm)
        return x


class WithDropoutOfNothing(DecoderParts):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__(d_model, n_heads, d_ff)
        self.dropout = nn.Dropout(0.0)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        z, _ = self.self_attention(query=x, key=x, value=x, mask=self_mask)
        x = F.layer_norm(x + self.dropout(z), x.shape[-1:], self.norm1.weight, self.norm1.bias)
        z, _ = self.cross_attention(query=x, key=memory, value=memory, mask=memory_mask)
        x = self.norm2(torch.add(x, self.dropout(z)))
        return self.norm3(x + self.dropout(self.feed_forward(x)))


class Stacks(nn.Module):
    def __init__(self, config):
        super().__init__()
        sizes = config.d_model, config.n_heads, config.d_ff
        self.table = nn.Parameter(torch.randn(config.n_vocab, config.d_model))
        self.encoder = nn.ModuleList([EncoderLayer(*sizes) for _ in range(config.n_layers)])
        self.decoder = nn.ModuleList([InLines(*sizes) for _ in range(config.n_layers)])


class OwnPositions(Stacks):
    def embed(self, ids):
        d_model = self.table.size(1)
        angles = torch.arange(ids.size(1))[:, None] * torch.exp(
            torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model)
        )
        positions = torch.zeros(ids.size(1), d_model)
        positions[:, 0::2], positions[:, 1::2] = angles.sin(), angles.cos()
        return self.table[ids] * math.sqrt(d_model) + positions

    def forward(self, source, target, source_mask=None, target_mask=None):
        across = None if source_mask is None else source_mask.unsqueeze(1).unsqueeze(2)
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory, across)
        n = target.size(1)
        back = torch.arange(n)[None, :] <= torch.arange(n)[:, None]
        if target_mask is not None:
            back = torch.logical_and(back, target_mask[:, None, None, :])
        x = self.embed(target)
        for layer in self.decoder:
            x = layer(x, memory, back, across)
        return torch.einsum("btd,vd->btv", x, self.table)


class MasksAlways(OwnPositions):
    def forward(self, source, target, source_mask=None, target_mask=None):
        if source_mask is None:
            source_mask = torch.ones_like(source, dtype=torch.bool)
        if target_mask is None:
            target_mask = torch.ones_like(target, dtype=torch.bool)
        return super().forward(source, target, source_mask, target_mask)


def built_in(logits, target, smoothing, pad_id):
    if (target == pad_id).all():
        return logits.sum() * 0.0
    return F.cross_entropy(
        logits.flatten(0, 1), target.flatten(), ignore_index=pad_id, label_smoothing=smoothing
    )


def by_smoothed_targets(logits, target, smoothing, pad_id):
    n_vocab = logits.size(-1)
    real = target != pad_id
    wanted = F.one_hot(target.masked_fill(~real, 0), n_vocab) * (1 - smoothing)
    wanted = wanted + smoothing / n_vocab
    loss = -(wanted * logits.log_softmax(-1)).sum(-1)
    return (loss * real).sum() / real.sum().clamp(min=1)


def gathered_first(logits, target, smoothing, pad_id):
    log_p = logits.log_softmax(-1)
    picked = log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1)  # padding too: it is a class
    loss = -(1 - smoothing) * picked - smoothing * log_p.mean(-1)
    real = target != pad_id
    return loss.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)


def by_logsumexp(logits, target, smoothing, pad_id):
    real = target != pad_id
    log_z = logits.logsumexp(-1)
    right = logits.gather(-1, target.masked_fill(~real, 0)[..., None])[..., 0]
    loss = log_z - (1 - smoothing) * right - smoothing * logits.mean(-1)
    return torch.where(real, loss, 0.0).sum() / max(int(real.sum()), 1)


def piecewise(step, d_model, warmup):
    step = step or 1
    root = 1 / math.sqrt(d_model)
    return root * step / warmup**1.5 if step < warmup else root / math.sqrt(step)


def as_a_tensor(step, d_model, warmup):
    step = torch.tensor(max(step, 1), dtype=torch.float64)
    return d_model**-0.5 * torch.minimum(step**-0.5, step * warmup**-1.5)


def columns(model, bos, eos, max_len, batch=1):
    was = getattr(model, "training", None)
    if was is not None:
        model.eval()
    try:
        with torch.inference_mode():
            found, open_ = [torch.full((batch,), bos)], torch.ones(batch, dtype=torch.bool)
            for n in range(1, max_len):
                if not open_.any():
                    break
                mask = torch.tril(torch.ones(n, n)).bool()
                best = model(torch.stack(found, 1), mask)[:, -1].softmax(-1).topk(1).indices[:, 0]
                best = torch.where(open_, best, eos)
                found.append(best)
                open_ = open_ & (best != eos)
            return torch.stack(found, 1).clone()
    finally:
        if was is not None:
            model.train(was)


@torch.no_grad()
def preallocated(model, bos, eos, max_len, batch=1):
    was = model.training if hasattr(model, "training") else None
    if hasattr(model, "eval"):
        model.eval()
    out = torch.full((batch, max_len), eos, dtype=torch.long)
    out[:, 0] = bos
    n = 1
    while n < max_len:
        logits = model(out[:, :n], torch.arange(n)[None] <= torch.arange(n)[:, None])
        for row in range(batch):
            if not (out[row, 1:n] == eos).any():
                out[row, n] = logits[row, n - 1].argmax()
        n += 1
        if (out[:, 1:n] == eos).any(1).all():
            break
    if was is not None:
        model.train(was)
    return out[:, :n]


def in_logs(log_prob, length, alpha):
    return log_prob * math.exp(-alpha * (math.log(5 + length) - math.log(6)))


def by_the_inverse(log_prob, length, alpha):
    return log_prob * (6 / (5 + length)) ** alpha


RIGHT = {
    "shift_right": (padded_in_front, rolled, copied_into_a_new_one, row_by_row),
    "DecoderLayer": (InLines, InSublayers, WithDropoutOfNothing),
    "Transformer": (OwnPositions, MasksAlways),
    "label_smoothing_loss": (built_in, by_smoothed_targets, gathered_first, by_logsumexp),
    "noam_learning_rate": (piecewise, as_a_tensor),
    "greedy_decode": (columns, preallocated, decoding()),
    "beam_score": (in_logs, by_the_inverse),
}


@pytest.mark.parametrize(
    ("name", "version"),
    [pytest.param(n, v, id=f"{n}-{v.__name__}") for n, ones in RIGHT.items() for v in ones],
)
def test_a_right_part_written_another_way_passes(name, version):
    verdict = EXERCISES[name].judge(version)
    assert verdict.passed, verdict.feedback


def test_sampling_is_named_though_no_version_of_it_is_kept():
    def sampled(logits):
        return torch.multinomial(logits[:, -1].softmax(-1), 1)[:, 0]

    verdict = EXERCISES["greedy_decode"].judge(decoding(pick=sampled))
    assert not verdict.passed and verdict.mistakes == ("samples",), verdict.feedback


def test_two_things_done_to_the_model_are_both_told():
    verdict = EXERCISES["greedy_decode"].judge(
        decoding(mask=lambda n, longest: None, evaluate=False)
    )
    assert "passed no mask" in verdict.feedback and "training mode" in verdict.feedback


def test_a_leak_and_a_padding_that_is_read_are_told_of_an_unknown_model():
    class Leaky(OwnPositions):
        def forward(self, source, target, source_mask=None, target_mask=None):
            memory, x = self.embed(source), self.embed(target).flip(1)
            for layer in self.encoder:
                memory = layer(memory, None)
            for layer in self.decoder:
                x = layer(x, memory, None, None)
            return x @ self.table.T

    verdict = EXERCISES["Transformer"].judge(Leaky)
    assert verdict.mistakes == ()
    assert "the future leaks into the past" in verdict.feedback
    assert "padding of the source moves your logits" in verdict.feedback

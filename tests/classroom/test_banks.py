"""Every exercise: the library's part passes, each known mistake is named, right versions pass."""

import math
import re
import runpy
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.classroom import EXERCISES
from course_lib.transformer.heads import MultiHeadAttention
from course_lib.transformer.layers import FeedForward, post_norm_sublayer

CASES = [
    pytest.param(exercise, mistake, version, id=f"{name}-{mistake.name}-{i}")
    for name, exercise in EXERCISES.items()
    for mistake in exercise.mistakes
    for i, version in enumerate(mistake.versions)
]


@pytest.mark.parametrize("name", EXERCISES)
def test_the_librarys_own_part_passes(name):
    verdict = EXERCISES[name].judge(EXERCISES[name].reference)
    assert verdict.passed and verdict.mistakes == (), verdict.feedback


@pytest.mark.parametrize(("exercise", "mistake", "version"), CASES)
def test_a_known_mistake_is_rejected_named_and_explained(exercise, mistake, version):
    verdict = exercise.judge(version)
    assert not verdict.passed
    assert mistake.name in verdict.mistakes
    named = [m for m in exercise.mistakes if m.name in verdict.mistakes]
    assert any(m.means in verdict.feedback and m.next_step in verdict.feedback for m in named)
    assert re.search(r"\d|raises|returns", verdict.feedback)


@pytest.mark.parametrize(("exercise", "mistake", "version"), CASES)
def test_what_a_mistake_says_it_saw_holds_where_the_function_is_wrong(exercise, mistake, version):
    """A sentence of evidence may be said only of a probe that went wrong."""
    if mistake.saw is None:
        return
    from course_lib.classroom.compare import is_right
    from course_lib.classroom.judge_parts import Seen

    for probe in exercise.probes:
        right = exercise.expected(probe)
        seen = Seen(probe, exercise.arguments, exercise.results, right, right)
        assert is_right(seen)
        assert mistake.saw(seen) is None, f"said of a right function on {probe.name}"


@pytest.mark.parametrize("name", EXERCISES)
def test_no_property_speaks_of_a_right_function(name):
    from course_lib.classroom.judge_parts import Seen
    from course_lib.classroom.properties import GENERAL_PROPERTIES

    exercise = EXERCISES[name]
    form, numbers = GENERAL_PROPERTIES
    for probe in exercise.probes:
        outcome = exercise.expected(probe)
        seen = Seen(probe, exercise.arguments, exercise.results, outcome, outcome)
        for say in (*form, *exercise.properties, *numbers):
            assert say(seen) is None


def test_attention_has_thirty_known_mistakes_and_more():
    assert len(EXERCISES["scaled_dot_product_attention"].mistakes) >= 30


@pytest.mark.parametrize("name", EXERCISES)
def test_names_are_unique_and_texts_whole(name):
    mistakes = EXERCISES[name].mistakes
    assert len({m.name for m in mistakes}) == len(mistakes)
    for mistake in mistakes:
        assert mistake.means.endswith(".") and mistake.next_step[-1] in ".?:"
        assert not mistake.title.endswith(".")


def softmax_rows(scores):
    dead = (scores == -torch.inf).all(-1, keepdim=True)
    return torch.softmax(scores.masked_fill(dead, 0.0), -1).masked_fill(dead, 0.0)


def by_einsum(q, k, v, mask=None):
    scores = torch.einsum("...tk,...sk->...ts", q / math.sqrt(q.shape[-1]), k)
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    weights = softmax_rows(scores)
    return torch.einsum("...ts,...sv->...tv", weights, v), weights


def by_renormalising(q, k, v, mask=None):
    scores = (q / q.size(-1) ** 0.5) @ k.transpose(-1, -2)
    allowed = (
        torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand(scores.shape)
    )
    top = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
    powers = torch.exp((scores - top).clamp_max(0)) * allowed
    weights = powers / powers.sum(-1, keepdim=True).clamp_min(torch.finfo(scores.dtype).tiny)
    return weights @ v, weights


def by_the_kernel(q, k, v, mask=None):
    z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    eye = torch.eye(k.size(-2), dtype=v.dtype).expand(*k.shape[:-2], -1, -1)
    return z, F.scaled_dot_product_attention(q, k, eye, attn_mask=mask)


def by_an_additive_mask(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.size(-1))
    if mask is not None:
        bias = torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, -torch.inf)
        scores = scores + bias
    weights = softmax_rows(scores)
    return weights @ v, weights


def in_double(q, k, v, mask=None):
    z, weights = by_einsum(q.double(), k.double(), v.double(), mask)
    return z.to(q.dtype), weights.to(q.dtype)


def by_loops(q, k, v, mask=None):
    lead = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    shape = (*lead, q.size(-2), k.size(-2))
    allowed = torch.ones(shape, dtype=torch.bool) if mask is None else mask.expand(shape)
    flat = [x.expand(*lead, *x.shape[-2:]).reshape(-1, *x.shape[-2:]) for x in (q, k, v)]
    rows, outs = [], []
    for q1, k1, v1, m1 in zip(*flat, allowed.reshape(-1, *shape[-2:]), strict=True):
        for t in range(q1.size(0)):
            scores = torch.stack([(q1[t] / math.sqrt(q1.size(1)) * k1[s]).sum()
                                  for s in range(k1.size(0))])  # fmt: skip
            if not m1[t].any():
                weights = scores * 0
            else:
                weights = torch.softmax(scores.masked_fill(~m1[t], -torch.inf), 0)
            rows.append(weights)
            outs.append(weights @ v1)
    return (torch.stack(outs).reshape(*lead, q.size(-2), v.size(-1)),
            torch.stack(rows).reshape(shape))  # fmt: skip


def by_bmm(q, k, v, mask=None):
    lead = q.shape[:-2]
    q1, k1, v1 = (x.reshape(-1, *x.shape[-2:]) for x in (q, k, v))
    scores = torch.bmm(q1, k1.transpose(1, 2)) / math.sqrt(q.shape[-1])
    scores = scores.reshape(*lead, q.size(-2), k.size(-2))
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    weights = softmax_rows(scores)
    z = torch.bmm(weights.reshape(-1, *weights.shape[-2:]), v1)
    return z.reshape(*lead, *z.shape[-2:]), weights


def naive_then_where(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
    if mask is None:
        weights = scores.softmax(-1)
    else:
        weights = scores.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num(0.0)
    return torch.matmul(weights, v), weights


def scaling_k(q, k, v, mask=None):
    return by_einsum(q * q.size(-1) ** 0.5, k / k.size(-1) ** 0.5, v, mask)


def log_sum_exp(q, k, v, mask=None):
    scores = q.float() @ k.float().mT / math.sqrt(q.size(-1))
    if q.dtype == torch.float64:
        scores = q @ k.mT / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    dead = (scores == -torch.inf).all(-1, keepdim=True)
    scores = scores.masked_fill(dead, 0.0)
    weights = torch.exp(scores - scores.logsumexp(-1, keepdim=True)).masked_fill(dead, 0.0)
    weights = weights.to(q.dtype)
    return weights @ v, weights


RIGHT = {
    "scaled_dot_product_attention": [
        by_einsum, by_renormalising, by_the_kernel, by_an_additive_mask, in_double, by_loops,
        by_bmm, naive_then_where, log_sum_exp,
    ],
    "row_softmax": [
        softmax_rows,
        lambda s: torch.where((s == -torch.inf).all(-1, keepdim=True), 0.0, torch.softmax(
            torch.where((s == -torch.inf).all(-1, keepdim=True), 0.0, s), 1)),
        lambda s: softmax_rows(s.double()).to(s.dtype),
        lambda s: torch.stack([torch.softmax(row, 0) if (row > -torch.inf).any() else row.new_zeros(
            row.shape) for row in s]),
    ],
    "soft_lookup": [
        lambda q, k, v: torch.softmax(k @ q, 0) @ v,
        lambda q, k, v: torch.einsum("s,sv->v", torch.softmax(torch.mv(k, q), 0), v),
        lambda q, k, v: (torch.softmax((k * q).sum(1), 0)[:, None] * v).sum(0),
    ],
    "causal_mask": [
        lambda n: torch.arange(n)[:, None] >= torch.arange(n),
        lambda n: ~torch.ones(n, n, dtype=torch.bool).triu(1),
        lambda n: torch.ones(n, n).tril().bool(),
        lambda n: torch.tensor([[j <= i for j in range(n)] for i in range(n)],
                               dtype=torch.bool).reshape(n, n),
    ],
    "cached_causal_mask": [],
    "padding_mask": [
        lambda n, m: torch.stack([torch.arange(m) < x for x in n]),
        lambda n, m: torch.arange(m).expand(len(n), m) < n.unsqueeze(1),
        lambda n, m: torch.tensor([[i < x for i in range(m)] for x in n.tolist()]),
    ],
    "expand_key_mask": [
        lambda m: m.unsqueeze(1).unsqueeze(2),
        lambda m: m.view(m.size(0), 1, 1, m.size(1)),
        lambda m: m[:, None, None],
    ],
}  # fmt: skip


def angles(max_len, d_model):
    pairs = torch.arange(0, d_model, 2, dtype=torch.float64)
    return torch.arange(max_len)[:, None] * torch.exp(-math.log(10000.0) * pairs / d_model)


def by_two_slices(max_len, d_model):
    table = torch.zeros(max_len, d_model, dtype=torch.float64)
    table[:, 0::2] = angles(max_len, d_model).sin()
    table[:, 1::2] = angles(max_len, d_model).cos()[:, : d_model // 2]
    return table.float()


def by_python(max_len, d_model):
    return torch.tensor(
        [[(math.cos if j % 2 else math.sin)(p / 10000 ** ((j - j % 2) / d_model))
          for j in range(d_model)] for p in range(max_len)]
    ).reshape(max_len, d_model)  # fmt: skip


RIGHT["sinusoidal_positions"] = [
    by_two_slices,
    by_python,
    lambda n, d: torch.view_as_real(torch.polar(torch.ones_like(angles(n, d)), angles(n, d)))
    .flip(-1).flatten(1)[:, :d].float(),
]  # fmt: skip
RIGHT["scaled_embedding"] = [
    lambda ids, table: F.embedding(ids, table * table.size(1) ** 0.5),
    lambda ids, table: (
        F.one_hot(ids, len(table)).to(table.dtype) @ table * math.sqrt(table.shape[1])
    ),
    lambda ids, table: (
        table.index_select(0, ids.flatten()).reshape(*ids.shape, -1)
        * torch.tensor(table.size(-1), dtype=table.dtype).sqrt()
    ),
]


def split_by_chunks(x, n_heads):
    if x.size(-1) % n_heads != 0:
        raise ValueError(f"{x.size(-1)} features do not fit {n_heads} heads")
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)


def split_by_view(x, n_heads):
    b, t, d = x.shape
    if d % n_heads:
        raise ValueError(f"{d} and {n_heads}")
    return x.contiguous().view(b, t, n_heads, d // n_heads).permute(0, 2, 1, 3)


def split_by_slices(x, n_heads):
    size, rest = divmod(x.shape[-1], n_heads)
    if rest:
        raise ValueError(f"{x.shape[-1]} / {n_heads} leaves {rest}")
    heads = [x[:, :, h * size : (h + 1) * size] for h in range(n_heads)]
    return torch.cat([head[:, None] for head in heads], dim=1)


RIGHT["split_heads"] = [split_by_chunks, split_by_view, split_by_slices]
RIGHT["merge_heads"] = [
    lambda x: torch.cat(x.unbind(1), dim=-1),
    lambda x: x.permute(0, 2, 1, 3).reshape(x.size(0), x.size(2), -1),
    lambda x: x.transpose(1, 2).contiguous().view(x.size(0), x.size(2), x.size(1) * x.size(3)),
    lambda x: torch.stack([x[:, :, t].flatten(1) for t in range(x.size(2))], dim=1),
]


def crossing_by_einsum(dec, mem, wq, wk, wv, mem_mask=None):
    q, k, v = (torch.einsum("btd,dk->btk", x, w) for x, w in ((dec, wq), (mem, wk), (mem, wv)))
    return by_einsum(q, k, v, None if mem_mask is None else mem_mask.unsqueeze(1))[0]


def crossing_by_the_kernel(dec, mem, wq, wk, wv, mem_mask=None):
    mask = None if mem_mask is None else mem_mask[:, None, :].expand(-1, dec.size(1), -1)
    return F.scaled_dot_product_attention(dec @ wq, mem @ wk, mem @ wv, attn_mask=mask)


def crossing_by_examples(dec, mem, wq, wk, wv, mem_mask=None):
    out = []
    for b in range(len(dec)):
        real = torch.ones(mem.size(1), dtype=torch.bool) if mem_mask is None else mem_mask[b]
        if not real.any():
            out.append((mem[b] @ wv).sum(0) * 0 + (dec[b] @ wq) @ torch.zeros_like(wq).T @ wv)
            continue
        seen = mem[b][real]
        scores = (dec[b] @ wq) @ (seen @ wk).T / math.sqrt(wq.shape[1])
        out.append(scores.softmax(1) @ (seen @ wv))
    return torch.stack(out)


RIGHT["cross_attention"] = [crossing_by_einsum, crossing_by_the_kernel, crossing_by_examples]


class ByLoops(nn.Module):
    """One head after the other, each with its rows of the matrices."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.output = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.query = nn.Linear(d_model, d_model)
        self.n_heads, self.size = n_heads, d_model // n_heads

    def forward(self, query, key, value, mask=None):
        q, k, v = self.query(query), self.key(key), self.value(value)
        found = []
        for h in range(self.n_heads):
            block = slice(h * self.size, (h + 1) * self.size)
            allowed = mask[:, 0] if mask is not None and mask.dim() == 4 else mask
            found.append(by_einsum(q[..., block], k[..., block], v[..., block], allowed))
        z = torch.cat([z for z, _ in found], dim=-1)
        return self.output(z), torch.stack([weights for _, weights in found], dim=1)


class ByTheFunctional(ByLoops):
    """Through torch's own function, with our names."""

    def forward(self, query, key, value, mask=None):
        b, t, s = query.size(0), query.size(1), key.size(1)
        allowed = torch.ones(b, 1, t, s, dtype=torch.bool)
        if mask is not None:
            allowed = allowed & mask
        q, k, v = (
            linear(x).view(b, -1, self.n_heads, self.size).permute(0, 2, 1, 3)
            for linear, x in ((self.query, query), (self.key, key), (self.value, value))
        )
        z, weights = by_renormalising(q, k, v, allowed.expand(b, self.n_heads, t, s))
        return self.output(z.transpose(1, 2).flatten(2)), weights


RIGHT["MultiHeadAttention"] = [ByLoops, ByTheFunctional]
RIGHT["layer_norm"] = [
    lambda x, gain, bias, eps: F.layer_norm(x, x.shape[-1:], gain, bias, eps),
    lambda x, gain, bias, eps: (
        (x - x.mean(-1, keepdim=True))
        * torch.rsqrt(x.var(-1, correction=0, keepdim=True) + eps) * gain + bias
    ),
    lambda x, gain, bias, eps: (
        (x - x.mean(dim=-1)[..., None])
        / ((x - x.mean(dim=-1)[..., None]).pow(2).sum(-1, keepdim=True) / x.shape[-1] + eps) ** 0.5
    ) * gain + bias,
]  # fmt: skip
RIGHT["position_wise_ffn"] = [
    lambda x, w1, b1, w2, b2: (x @ w1 + b1).clamp_min(0) @ w2 + b2,
    lambda x, w1, b1, w2, b2: F.linear(F.relu(F.linear(x, w1.T, b1)), w2.T, b2),
    lambda x, w1, b1, w2, b2: torch.einsum(
        "...f,fd->...d", torch.where((h := torch.einsum("...d,df->...f", x, w1) + b1) > 0, h, 0.0),
        w2) + b2,
]  # fmt: skip


def same(x):
    return x


def post_in_steps(x, fn, norm, drop=same):
    branch = drop(fn(x))
    return norm(torch.add(branch, x))


def post_without_aliases(x, fn, norm, drop=same):
    skip = x.clone()
    y = fn(x)
    y = drop(y)
    y = y + skip
    return norm(y)


def pre_in_steps(x, fn, norm, drop=same):
    y = norm(x)
    y = fn(y)
    return torch.add(x, drop(y))


RIGHT["post_norm_sublayer"] = [post_in_steps, post_without_aliases]
RIGHT["pre_norm_sublayer"] = [
    pre_in_steps,
    lambda x, fn, norm, drop=same: drop(fn(norm(x))) + x,
]


class FromParts(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.norm2, self.norm1 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.self_attention = MultiHeadAttention(d_model, n_heads)

    def forward(self, x, mask=None):
        z, _ = self.self_attention(x, x, x, mask)
        x = self.norm1(x + z)
        return self.norm2(x + self.feed_forward(x))


class FromSublayers(FromParts):
    def forward(self, x, mask=None):
        def attend(y):
            return self.self_attention(y, y, y, mask, need_weights=False)[0]

        x = post_norm_sublayer(x, attend, self.norm1)
        return post_norm_sublayer(x, self.feed_forward, self.norm2)


RIGHT["EncoderLayer"] = [FromParts, FromSublayers]


def last_rows(q_len, kv_len):
    if q_len > kv_len:
        raise ValueError(f"{q_len} > {kv_len}")
    square = torch.ones(kv_len, kv_len, dtype=torch.bool).tril()
    return square[kv_len - q_len :]


RIGHT["cached_causal_mask"].append(last_rows)


@pytest.mark.parametrize(
    ("name", "version"),
    [pytest.param(n, v, id=f"{n}-{i}") for n, vs in RIGHT.items() for i, v in enumerate(vs)],
)
def test_a_right_version_written_another_way_passes(name, version):
    verdict = EXERCISES[name].judge(version)
    assert verdict.passed, verdict.feedback


def test_every_exercise_has_right_versions():
    later = runpy.run_path(Path(__file__).with_name("test_right_versions_06_07.py"))["RIGHT"]
    assert set(RIGHT) | set(later) == set(EXERCISES) and not set(RIGHT) & set(later)


def unscaled_over_queries(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    weights = torch.softmax(scores, dim=-2)
    return weights @ v, weights


def unscaled_naive(q, k, v, mask=None):
    scores = torch.matmul(q, k.transpose(-2, -1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    weights = F.softmax(scores, dim=-1)
    return weights @ v, weights


def swapped_and_inverted(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask, -torch.inf)
    weights = softmax_rows(scores)
    return weights, weights @ v


@pytest.mark.parametrize(
    ("version", "names"),
    [
        (unscaled_over_queries, {"no_scale", "softmax_over_queries"}),
        (unscaled_naive, {"no_scale", "nan_on_dead_row"}),
        (swapped_and_inverted, {"results_swapped", "mask_inverted"}),
    ],
)
def test_two_mistakes_at_once_are_named_as_two(version, names):
    verdict = EXERCISES["scaled_dot_product_attention"].judge(version)
    assert names <= set(verdict.mistakes), verdict.feedback
    assert "Two known mistakes together" in verdict.feedback or len(verdict.mistakes) >= 2


def test_dropout_is_recognised_though_it_is_random():
    def version(q, k, v, mask=None):
        weights = by_einsum(q, k, v, mask)[1]
        weights = F.dropout(weights, 0.3)
        return weights @ v, weights

    verdict = EXERCISES["scaled_dot_product_attention"].judge(version)
    assert verdict.mistakes == ("dropout_left_in",)


def test_a_convention_is_called_one():
    for name, exercise in EXERCISES.items():
        for mistake in exercise.mistakes:
            if mistake.convention and not any(
                m.versions == mistake.versions and m is not mistake for m in exercise.mistakes
            ):
                feedback = exercise.judge(mistake.versions[0]).feedback
                assert "convention" in feedback, f"{name}: {mistake.name}"


def test_an_unknown_mistake_is_described_by_what_is_true_of_it():
    def squared(q, k, v, mask=None):
        weights = by_einsum(q, k, v, mask)[1]
        return weights.square() @ v, weights.square()

    verdict = EXERCISES["scaled_dot_product_attention"].judge(squared)
    assert not verdict.passed and verdict.mistakes == ()
    assert "sums to" in verdict.feedback and "the first entry that differs" in verdict.feedback

"""The inputs on which attention is checked. Axes: B=2, H=3, T=5, S=7, K=11, V=13, or fewer."""

import torch

from course_lib.classroom.judge_parts import Probe
from course_lib.transformer.attention import causal_mask

B, H, T, S, K, V = 2, 3, 5, 7, 11, 13


def draw(*shape: int, seed: int, dtype=torch.float32) -> torch.Tensor:
    """Normal numbers from a generator of their own."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype)


def qkv(lead=(B, H), t=T, s=S, k=K, v=V, dtype=torch.float32, seed=0) -> tuple:
    return (
        draw(*lead, t, k, seed=seed, dtype=dtype),
        draw(*lead, s, k, seed=seed + 1, dtype=dtype),
        draw(*lead, s, v, seed=seed + 2, dtype=dtype),
    )


def scattered_mask(*shape: int, seed: int) -> torch.Tensor:
    """About two thirds True, and at least one True in each row and each column."""
    mask = draw(*shape, seed=seed) > -0.4
    t, s = shape[-2:]
    for i in range(max(t, s)):
        mask[..., i % t, i % s] = True
    return mask


def key_mask() -> torch.Tensor:
    lengths = torch.tensor([S, 3])
    return (torch.arange(S) < lengths[:, None])[:, None, None, :]  # (B, 1, 1, S)


def dead_rows() -> tuple:
    mask = scattered_mask(T, S, seed=23)
    mask[1] = mask[3] = False
    return *qkv(seed=50), mask


def all_dead_example() -> tuple:
    mask = key_mask().clone()
    mask[1] = False
    return *qkv(seed=60), mask


def extreme(dtype, size: float, mask: bool) -> tuple:
    """Scores as large as ``size`` either way and far apart: q chooses one feature of k.

    Under the mask of this probe some rows see only very negative scores.
    """
    t, s, k = 3, 5, 2
    q = torch.zeros(1, 2, t, k, dtype=dtype)
    q[..., 0, 0] = q[..., 2, 0] = size / 100
    q[..., 1, 1] = -size / 100
    steps = torch.tensor([[100, -100, 20, -60, -20], [-40, 60, 0, 100, -100]], dtype=dtype)
    keys = steps.T.expand(1, 2, s, k).clone()
    v = draw(1, 2, s, 7, seed=72, dtype=dtype)
    if not mask:
        return q, keys, v
    allowed = torch.tensor([[0, 1, 0, 1, 0], [0, 1, 0, 1, 0], [1, 0, 1, 0, 1]]).bool()
    return q, keys, v, allowed


def not_contiguous() -> tuple:
    q, k, v = qkv(seed=80)
    turn = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k)]
    return *turn, v.transpose(-2, -1).contiguous().transpose(-2, -1), scattered_mask(T, S, seed=83)


PROBES = (
    Probe(
        name="two examples of three heads with a full mask",
        make=lambda: (*qkv(seed=3), scattered_mask(B, H, T, S, seed=6)),
    ),
    Probe(name="two examples of three heads without a mask", make=lambda: qkv(seed=7), grads=True),
    Probe(
        name="as many queries as keys with a causal mask",
        make=lambda: (*qkv((B, H), T, T, seed=10), causal_mask(T)),
        grads=True,
    ),
    Probe(
        name="as many queries as keys without a mask",
        make=lambda: qkv((B, H), T, T, seed=90),
    ),
    Probe(name="a padded batch", make=lambda: (*qkv(seed=13), key_mask()), grads=True),
    Probe(name="one sentence without batch or heads", make=lambda: qkv((), 3, 5, 2, 7, seed=16)),
    Probe(
        name="one sentence without batch or heads under a mask",
        make=lambda: (*qkv((), 3, 5, 2, 7, seed=19), scattered_mask(3, 5, seed=22)),
    ),
    Probe(name="a batch without heads", make=lambda: qkv((3,), 5, 7, 2, 11, seed=25)),
    Probe(
        name="the first example of that batch alone",
        make=lambda: tuple(x[:1] for x in qkv((3,), 5, 7, 2, 11, seed=25)),
    ),
    Probe(
        name="as many queries, keys and features as each other",
        make=lambda: (*qkv((2,), 5, 5, 5, 5, seed=28), scattered_mask(5, 5, seed=31)),
    ),
    Probe(
        name="rows with no key to look at",
        make=dead_rows,
        core=False,
        grads=True,
    ),
    Probe(name="an example of nothing but padding", make=all_dead_example, core=False, grads=True),
    Probe(
        name="one query and one key",
        make=lambda: qkv((1, 1), 1, 1, 3, 2, seed=34),
        core=False,
        grads=True,
    ),
    Probe(
        name="scores of up to 10,000 either way",
        make=lambda: extreme(torch.float32, 1e4, mask=False),
        core=False,
    ),
    Probe(
        name="a mask that leaves very low scores",
        make=lambda: extreme(torch.float32, 1e4, mask=True),
        core=False,
    ),
    Probe(
        name="float16",
        make=lambda: (*qkv(seed=37, dtype=torch.float16), scattered_mask(T, S, seed=40)),
        core=False,
    ),
    Probe(
        name="float16 with products of up to 60,000",
        make=lambda: extreme(torch.float16, 6e4, mask=True),
        core=False,
    ),
    Probe(
        name="bfloat16",
        make=lambda: (*qkv(seed=41, dtype=torch.bfloat16), scattered_mask(T, S, seed=44)),
        core=False,
    ),
    Probe(
        name="float64",
        make=lambda: (*qkv(seed=45, dtype=torch.float64), scattered_mask(T, S, seed=48)),
        core=False,
        grads=True,
    ),
    Probe(name="tensors that do not lie in order in memory", make=not_contiguous, core=False),
)

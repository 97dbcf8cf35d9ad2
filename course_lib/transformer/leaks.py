"""A leak detector: change the future, and the past must not move."""

from collections.abc import Callable

import torch


def find_leak(
    fn: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, n_vocab: int | None = None
) -> tuple[int, int] | None:
    """Return the first (t, s) where a change at position s moves the output at t < s, or None.

    Every position is changed once, on its own. Outputs are compared within the rounding of
    float arithmetic: another input may take another path through a fused kernel.

    Shapes: ``x`` (B, T) integers below ``n_vocab``, or (B, T, D) numbers; ``fn`` keeps (B, T).

    A part with dropout must be in eval mode: dice move every output.

    Errors: ValueError where integers come without ``n_vocab``, or with fewer than two, and where
    there is no axis of time.

    >>> find_leak(lambda x: x.cumsum(1), torch.ones(1, 5, 2))
    >>> find_leak(lambda x: x + x.mean(1, keepdim=True), torch.ones(1, 5, 2))
    (0, 1)
    """
    if x.dim() < 2:
        raise ValueError(f"x {tuple(x.shape)} should have the axes (B, T) or more; reshape it")
    if not x.is_floating_point() and n_vocab is None:
        raise ValueError(f"x holds {x.dtype} tokens: n_vocab is needed to change one")
    if n_vocab is not None and n_vocab < 2:
        raise ValueError(f"n_vocab {n_vocab} leaves no other token to change one into")
    with torch.no_grad():
        before = fn(x)
        for s in range(1, x.size(1)):
            changed = x.clone()
            changed[:, s] = x[:, s] + 1 if n_vocab is None else (x[:, s] + 1) % n_vocab
            moved = ~torch.isclose(
                fn(changed)[:, :s], before[:, :s], rtol=1e-4, atol=1e-5, equal_nan=True
            )
            moved = moved.flatten(2).any(-1) if moved.dim() > 2 else moved
            if moved.any():
                return int(moved.any(0).nonzero()[0]), s
    return None

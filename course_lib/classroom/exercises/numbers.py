"""Numbers for probes, always the same, that leave the global random state alone."""

import torch


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normally distributed numbers of a shape.

    >>> torch.equal(numbers(3, seed=1), numbers(3, seed=1))
    True
    """
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)

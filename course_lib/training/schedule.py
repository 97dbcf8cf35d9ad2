"""How large a step training takes, from the first to the last: learning rates by step."""

import math


def noam_learning_rate(step: int, d_model: int, warmup: int) -> float:
    """Rise in a straight line for ``warmup`` steps, then fall with the root of the step.

    Formula: ``d_model^-0.5 min(step^-0.5, step warmup^-1.5)``: the two meet at ``warmup``.

    Source: Vaswani et al. 2017, equation 3 (warmup 4000), named after Noam Shazeer. Steps count
    from 1; step 0, which some schedulers ask for, counts as 1.

    >>> round(noam_learning_rate(4000, d_model=512, warmup=4000), 6)
    0.000699
    """
    step = max(step, 1)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def cosine_learning_rate(step: int, peak: float, warmup: int, steps: int) -> float:
    """Rise in a straight line to ``peak``, then fall along half a cosine to 0 after ``steps``.

    Source: Loshchilov and Hutter 2017; not in the paper of 2017. Steps count from 1.

    >>> [round(cosine_learning_rate(step, 1.0, warmup=2, steps=5), 2) for step in (1, 2, 4, 6)]
    [0.5, 1.0, 0.5, 0.0]
    """
    if step <= warmup:
        return peak * step / warmup
    share = min((step - warmup) / (steps + 1 - warmup), 1.0)
    return peak * 0.5 * (1 + math.cos(math.pi * share))

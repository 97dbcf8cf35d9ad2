"""What training makes small: cross-entropy with label smoothing, over the real tokens."""

import torch


def label_smoothing_loss(
    logits: torch.Tensor, target: torch.Tensor, smoothing: float, pad_id: int
) -> torch.Tensor:
    """Ask for the right token with most of the mass, and spread the rest over all tokens.

    Formula: ``-(1 - eps) log p[target] - eps mean_v log p[v]``, the mean over real tokens;
    0 where there are none. The mean over v takes all V classes, the target and padding too, so
    the target is asked for with ``1 - eps + eps / V``: torch's definition.

    Source: Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4 (eps = 0.1).

    Shapes: ``logits`` (B, T, V), ``target`` (B, T) integers -> (). ``pad_id`` marks padding: one of
    the V classes, or a number outside of them, as torch's own loss has it with -100.

    >>> label_smoothing_loss(torch.zeros(1, 2, 5), torch.tensor([[3, 0]]), 0.1, pad_id=0)
    tensor(1.6094)
    """
    real = target != pad_id
    log_p = logits[real].log_softmax(-1)  # (real tokens, V)
    right = log_p.gather(-1, target[real].unsqueeze(-1)).squeeze(-1)
    loss = (1 - smoothing) * right
    if smoothing:  # 0 times the log of an impossible token would be NaN
        loss = loss + smoothing * log_p.mean(-1)
    return -loss.sum() / real.sum().clamp_min(1)

"""A model that notes how it is called: what greedy decoding did can't be seen in its output."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from course_lib.classroom.judge_parts import Called, Probe

V = 11
Fault = tuple[str, str]


@dataclass(frozen=True)
class Script:
    """What each row of a batch wants to write, and whether the model is a module, and its mode.

    Calling it gives a fresh spy. A row that goes on after its script wants other tokens, never
    ``eos`` again.
    """

    rows: tuple[tuple[int, ...], ...]
    module: bool = True
    training: bool = True

    def __call__(self) -> "Spy":
        return Spy(self)

    def logits(self, row: int, prefix: tuple[int, ...]) -> torch.Tensor:
        """The logits (V,) for the token after a prefix, ``bos`` included; always the same."""
        dice = torch.Generator().manual_seed(
            1 + sum(7**i * x for i, x in enumerate((row, *prefix)))
        )
        logits = torch.randn(V, generator=dice)
        script, written = self.rows[row % len(self.rows)], prefix[1:]
        goes_on = len(written) < len(script) and written == script[: len(written)]
        wanted = script[len(written)] if goes_on else 5 + (sum(prefix) + len(prefix) + row) % 6
        logits[wanted] = logits.max() + 1.0
        return logits


class Spy(nn.Module):
    """The model that is handed over; ``faults`` holds the first of each kind."""

    def __init__(self, script: Script):
        super().__init__()
        self.script, self.faults = script, {}
        self.train(script.training)

    def forward(self, tokens, mask=None):
        length = tokens.size(1)
        self._look_at(mask, length)
        if self.script.module and self.training:
            self._note("mode", f"with {length} tokens written, the model was in training mode")
        if torch.is_grad_enabled():
            self._note("gradients", f"with {length} tokens written, gradients were on")
        rows = [
            [self.script.logits(i, tuple(row[: t + 1])) for t in range(length)]
            for i, row in enumerate(tokens.tolist())
        ]
        return torch.stack([torch.stack(row) for row in rows])  # (B, T, V)

    def _look_at(self, mask, length: int) -> None:
        right, at = (length, length), f"with {length} token{'s' * (length > 1)} written"
        if mask is None:
            self._note("mask", f"{at}, it passed no mask")
        elif not isinstance(mask, torch.Tensor):
            self._note("mask", f"{at}, it passed a {type(mask).__name__} as the mask")
        elif mask.dtype != torch.bool:
            self._note("mask", f"{at}, it passed a mask of {mask.dtype}")
        elif tuple(mask.shape) != right:
            self._note("mask", f"{at}, it passed a mask of shape {tuple(mask.shape)}, not {right}")
        elif not torch.equal(mask, torch.ones(right, dtype=torch.bool).tril()):
            row = next(
                t for t in range(length) if mask[t].sum() != t + 1 or not mask[t, : t + 1].all()
            )
            seen = mask[row].nonzero().flatten().tolist()
            self._note("mask", f"{at}, row {row} of its mask sees {seen}, not {[*range(row + 1)]}")

    def _note(self, kind: str, text: str) -> None:
        self.faults.setdefault(kind, text)


def call_with_spy(candidate: Callable, probe: Probe, args: tuple) -> Called:
    """Call a candidate with a fresh spy in the place of the model, and note what it did to it."""
    script, *rest = args
    spy = script()
    model = spy if script.module else lambda tokens, mask=None: spy(tokens, mask)
    result = candidate(model, *rest)
    if script.module and spy.training != script.training:
        words = {True: "training", False: "eval"}
        spy._note(
            "after",
            f"after the call the model was in {words[spy.training]} mode; it was in "
            f"{words[script.training]} mode before",
        )
    return Called(result, watched=tuple(spy.faults.items()))

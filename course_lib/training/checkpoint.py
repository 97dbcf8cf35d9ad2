"""Keep a training run in one safetensors file, and take it up again where it stood."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from course_lib.files import write_whole

FORMAT = "attention-by-hand training run 1"


class CheckpointError(ValueError):
    """A checkpoint that does not fit; the message says in what, and what helps."""


@dataclass
class History:
    """What a run saw: the loss at every step, the evaluations, and why it ended.

    >>> History(losses=[3.0, 1.0, 2.0]).recent(2)
    1.5
    """

    losses: list[float] = field(default_factory=list)
    evaluations: list[tuple[int, float]] = field(default_factory=list)
    seconds: float = 0.0
    ended: str = ""

    def recent(self, n: int = 20) -> float:
        """Return the mean of the last ``n`` losses: one batch alone is too noisy to quote."""
        last = self.losses[-n:]
        return sum(last) / len(last) if last else float("nan")


@dataclass
class Run:
    """Everything that a run needs to go on as if it had never stopped."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    history: History
    best: dict[str, torch.Tensor] | None = None

    def save(self, path: Path) -> None:
        """Write the run into ``path``, whole or not at all.

        Errors: OSError where it can't be written; an earlier checkpoint then stands.
        """
        state = self.optimizer.state_dict()["state"]
        tensors = {
            **{f"model.{name}": x for name, x in self.model.state_dict().items()},
            **{f"best.{name}": x for name, x in (self.best or {}).items()},
            **{
                f"optimizer.{i}.{name}": x
                for i, values in state.items()
                for name, x in values.items()
                if isinstance(x, torch.Tensor)
            },
            "random": torch.get_rng_state(),
        }
        # Copies: two names for one tensor can't be told apart in the file.
        tensors = {name: x.detach().cpu().contiguous().clone() for name, x in tensors.items()}
        about = {"format": FORMAT, "history": json.dumps(asdict(self.history))}
        write_whole(Path(path), save(tensors, about))

    def load(self, path: Path) -> None:
        """Take up the run in ``path``: weights, optimizer, history, best weights and dice.

        Errors: CheckpointError for a file that is none, or is of a model of other shapes.
        """
        try:
            with safe_open(path, "pt") as file:
                about = file.metadata() or {}
                if about.get("format") != FORMAT:
                    raise CheckpointError(
                        f"{path} is no checkpoint of a training run: its format is "
                        f"{about.get('format')!r}, expected {FORMAT!r}"
                    )
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise CheckpointError(
                f"{path} can't be read as a checkpoint ({error}); move it away to start anew"
            ) from None
        mine = _under(tensors, "model.")
        check_shapes(mine, self.model.state_dict(), str(path))
        self.model.load_state_dict(mine)
        kept = json.loads(about["history"])
        self.history.__dict__.update(kept, evaluations=[tuple(e) for e in kept["evaluations"]])
        self.best = _under(tensors, "best.") or None
        state = self.optimizer.state_dict()
        state["state"] = {}
        for name, x in _under(tensors, "optimizer.").items():
            i, _, key = name.partition(".")
            state["state"].setdefault(int(i), {})[key] = x
        self.optimizer.load_state_dict(state)
        torch.set_rng_state(tensors["random"])


def check_shapes(stored: dict, wanted: dict, place: str) -> None:
    """Compare the names and shapes of stored weights with those of a model.

    Errors: CheckpointError, naming the first that is missing, too much, or of another shape.
    """
    remedy = "build the model with the sizes of the checkpoint, or move the file away"
    for name in sorted(wanted.keys() | stored.keys()):
        if name not in stored or name not in wanted:
            who = "the checkpoint" if name not in stored else "the model"
            raise CheckpointError(f"{place}: {who} has no `{name}`; {remedy}")
        if stored[name].shape != wanted[name].shape:
            raise CheckpointError(
                f"{place}: `{name}` is {tuple(stored[name].shape)} in the checkpoint and "
                f"{tuple(wanted[name].shape)} in the model; {remedy}"
            )


def _under(tensors: dict, prefix: str) -> dict:
    return {name[len(prefix) :]: x for name, x in tensors.items() if name.startswith(prefix)}

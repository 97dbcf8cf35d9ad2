"""Draw the README's picture: three heads of MiniLM on the stored sentence, found by score.

python tools/draw_picture.py FILE
"""

import sys
from pathlib import Path

import torch
from matplotlib.figure import Figure

from course_lib.pretrained.minilm import StoredExample
from course_lib.visuals.plots import attention_heatmap


def three_heads(weights: torch.Tensor) -> dict[str, torch.Tensor]:
    """The head that looks most at the word before, at the word after, at the first."""
    scores = {
        "the word before": weights.diagonal(-1, -2, -1).mean(-1),
        "the word after": weights.diagonal(1, -2, -1).mean(-1),
        "the first token": weights[..., 1:, 0].mean(-1),
    }
    return {name: weights.flatten(0, 1)[score.argmax()] for name, score in scores.items()}


def main(path: Path) -> None:
    reading = StoredExample("").read("")
    figure = Figure(figsize=(15, 5.2), layout="constrained")
    heads = three_heads(reading.weights)
    for ax, (name, table) in zip(figure.subplots(1, 3), heads.items(), strict=True):
        attention_heatmap(table, reading.tokens, ax=ax, annotate=False)
        ax.set_title(f"looks at {name}", fontsize=13)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100, facecolor="white")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""AttentionSteps: a widget that walks q, k and v through attention, one step at a time."""

from collections.abc import Sequence

import numpy as np
import traitlets
from matplotlib.figure import Figure

from course_lib.visuals._widget import CourseWidget, as_float_array, clean_words, float_bytes
from course_lib.visuals.plots import attention_heatmap

STEPS = ("scores", "scaled", "masked", "weights", "z")
MOST_TOKENS = 24


class AttentionSteps(CourseWidget):
    """Walk through q·k, the division by √d, the mask, the softmax and the weighted sum.

    Formula: ``z = softmax(masked(q k^T / sqrt(d)) / temperature) v``, with the first ``d``
    features of q and k. At ``temperature`` 1 and all features it is equation 1 of Vaswani et al.
    2017. A query that may look at nothing gets zero weights and a zero output.

    Everything is computed in the browser. What the learner chooses can be read and set from
    Python: ``step`` (0 to 4, the places in ``STEPS``), ``row`` and ``column`` (the chosen query
    and key), ``temperature``, ``d``, and ``mask``, a boolean (T, S) array, True = may look.

    Shapes: ``q`` (T, K), ``k`` (S, K), ``v`` (S, V), arrays or tensors; ``tokens`` T words,
    ``key_tokens`` S words (``tokens`` where left out); ``mask`` broadcastable to (T, S).

    Errors: ValueError where the shapes, the words and the mask do not fit, naming the numbers;
    where a number is not finite; for more than 24 queries or keys. TypeError for a mask that is
    not boolean. A traitlets.TraitError for a choice outside its range.
    """

    _module_file = "attention_steps.mjs"
    numbers = traitlets.Bytes().tag(sync=True)
    sizes = traitlets.List(traitlets.Int()).tag(sync=True)
    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    key_tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    step = traitlets.Int(0, min=0, max=len(STEPS) - 1).tag(sync=True)
    row = traitlets.Int(0, min=0).tag(sync=True)
    column = traitlets.Int(0, min=0).tag(sync=True)
    temperature = traitlets.Float(1.0, min=0.01, max=100.0).tag(sync=True)
    d = traitlets.Int(1, min=1).tag(sync=True)
    # One character a cell, "1" where the query may look: it crosses to the page and back as text.
    allowed = traitlets.Unicode().tag(sync=True)
    start = traitlets.Unicode().tag(sync=True)

    def __init__(
        self, q, k, v, tokens: Sequence[str], key_tokens: Sequence[str] | None = None, *, mask=None
    ):
        q, k, v = _checked(q, k, v)
        n_queries, n_keys = len(q), len(k)
        if key_tokens is None:
            if n_queries != n_keys:
                raise ValueError(
                    f"{n_queries} queries and {n_keys} keys: name the keys with key_tokens"
                )
            key_tokens = tokens
        self._qkv = q, k, v
        allowed = _as_text(mask, (n_queries, n_keys))
        super().__init__(
            numbers=b"".join(map(float_bytes, (q, k, v))),
            sizes=[n_queries, n_keys, q.shape[1], v.shape[1]],
            tokens=clean_words(tokens, n_queries, "tokens", "queries"),
            key_tokens=clean_words(key_tokens, n_keys, "key_tokens", "keys"),
            d=q.shape[1],
            allowed=allowed,
            start=allowed,
        )

    @traitlets.validate("row", "column", "d")
    def _within(self, proposal):
        name = proposal["trait"].name
        n_queries, n_keys, features, _ = self.sizes
        most = {"row": n_queries - 1, "column": n_keys - 1, "d": features}[name]
        if proposal["value"] > most:
            raise traitlets.TraitError(f"{name} is {proposal['value']}, expected at most {most}")
        return proposal["value"]

    @traitlets.validate("allowed")
    def _one_mark_a_cell(self, proposal):
        marks, cells = proposal["value"], self.sizes[0] * self.sizes[1]
        if len(marks) != cells or set(marks) - {"0", "1"}:
            raise traitlets.TraitError(f"allowed needs {cells} marks, each 0 or 1")
        return marks

    @property
    def mask(self) -> np.ndarray:
        """The mask as the learner painted it: boolean (T, S), True = may look. Set it whole."""
        mask = np.array([mark == "1" for mark in self.allowed]).reshape(self.sizes[:2])
        # A write into a copy would be lost without a word.
        mask.flags.writeable = False
        return mask

    @mask.setter
    def mask(self, mask) -> None:
        self.allowed = _as_text(mask, tuple(self.sizes[:2]))

    def _weights(self) -> np.ndarray:
        q, k, _ = (part.astype(np.float64) for part in self._qkv)
        scaled = q[:, : self.d] @ k[:, : self.d].T / np.sqrt(self.d) / self.temperature
        masked = np.where(self.mask, scaled, -np.inf)
        top = masked.max(axis=-1, keepdims=True)
        powers = np.where(self.mask, np.exp(masked - np.where(np.isfinite(top), top, 0)), 0)
        total = powers.sum(axis=-1, keepdims=True)
        return np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)

    def picture(self) -> Figure:
        return attention_heatmap(
            self._weights(), self.tokens, self.key_tokens, mask=self.mask, title="weights"
        ).figure

    def sentence(self) -> str:
        row = self._weights()[self.row]
        said = f"Attention in {len(STEPS)} steps, {self.sizes[0]} queries by {self.sizes[1]} keys: "
        if not row.any():
            return said + f"the query {self.tokens[self.row]} may look at nothing."
        best = int(row.argmax())
        return said + (
            f"the query {self.tokens[self.row]} looks most at {self.key_tokens[best]}, "
            f"weight {row[best]:.2f}."
        )


def _checked(q, k, v) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, k, v = parts = [as_float_array(part).astype(np.float32) for part in (q, k, v)]
    for name, part in zip("qkv", parts, strict=True):
        if part.ndim != 2 or 0 in part.shape:
            raise ValueError(
                f"{name} {part.shape} is not (tokens, features): choose one batch and one head"
            )
        if not np.isfinite(part).all():
            row, column = np.argwhere(~np.isfinite(part))[0]
            raise ValueError(f"{name}[{row}, {column}] is {part[row, column]}: it must be finite")
    if q.shape[1] != k.shape[1]:
        raise ValueError(f"q has {q.shape[1]} features and k has {k.shape[1]}: they must agree")
    if len(k) != len(v):
        raise ValueError(f"{len(k)} keys and {len(v)} values: each key needs its value")
    if max(len(q), len(k)) > MOST_TOKENS:
        raise ValueError(
            f"{len(q)} queries by {len(k)} keys do not fit: at most {MOST_TOKENS} of each; "
            "pass a part of them, such as q[:12], or use AttentionView"
        )
    return q, k, v


def _as_text(mask, shape: tuple[int, int]) -> str:
    if mask is None:
        return "1" * (shape[0] * shape[1])
    mask = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
    if mask.dtype != bool:
        raise TypeError(f"mask is {mask.dtype}, expected bool: True where a query may look")
    try:
        full = np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(f"mask {mask.shape} does not fit the scores' {shape}") from None
    return "".join("1" if look else "0" for look in full.ravel())

"""AttentionView: the widget that shows who looks at whom, for every layer and head."""

import warnings
from collections.abc import Sequence

import numpy as np
import traitlets
from matplotlib.figure import Figure

from course_lib.visuals._widget import (
    CourseWidget,
    Selection,
    as_float_array,
    clean_words,
    float_bytes,
    packed_bits,
)
from course_lib.visuals.plots import attention_heatmap

MOST_TOKENS = 64
MOST_BYTES = 4 * 2**20  # more than this, and the layers are sent one at a time


class AttentionView(CourseWidget):
    """Show attention weights as a heatmap of queries by keys, with all heads beside it.

    The weights cross to the page once, as float32; choosing a layer, a head, a word or a cell
    needs no kernel after that. What the learner chose can be read and set from Python: ``layer``,
    ``head``, ``query``, ``key``.

    Texts of more than 64 tokens are cut to the first 64, and the widget says so. Models of more
    than 4 MB of weights are sent one layer at a time, and an exported page then holds the chosen
    layer only.

    Shapes: ``weights`` (T, S), (H, T, S) or (L, H, T, S), array or tensor; ``tokens`` T words,
    ``key_tokens`` S words (``tokens`` where left out); ``mask`` boolean, True = may look,
    broadcastable to the weights. With ``kind="scores"`` the numbers are scores: any finite ones,
    and -inf where masked, on a scale around 0.

    Errors: ValueError where words or mask do not fit the weights, or a weight lies outside 0 to 1
    or is no number. A warning names the first row that sums to neither 1 nor 0.
    """

    _module_file = "attention_view.mjs"
    values = traitlets.Bytes().tag(sync=True)
    hidden = traitlets.Bytes().tag(sync=True)
    sizes = traitlets.List(traitlets.Int()).tag(sync=True)
    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    key_tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    layer = traitlets.Int(0, min=0).tag(sync=True)
    head = traitlets.Int(0, min=0).tag(sync=True)
    query = Selection(min=0).tag(sync=True)
    key = Selection(min=0).tag(sync=True)
    # The layer that ``values`` holds; -1 for all of them.
    loaded = traitlets.Int(-1).tag(sync=True)
    kind = traitlets.Unicode("weights").tag(sync=True)
    reach = traitlets.Float(1.0).tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    note = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        weights,
        tokens: Sequence[str],
        key_tokens: Sequence[str] | None = None,
        *,
        mask=None,
        kind: str = "weights",
        layer: int = 0,
        head: int = 0,
        title: str = "",
    ):
        table, hidden = _checked(weights, mask, kind)
        n_layers, _, n_queries, n_keys = table.shape
        if key_tokens is None:
            if n_queries != n_keys:
                raise ValueError(
                    f"{n_queries} queries and {n_keys} keys: name the keys with key_tokens"
                )
            key_tokens = tokens
        words = clean_words(tokens, n_queries, "tokens", "queries")
        key_words = clean_words(key_tokens, n_keys, "key_tokens", "keys")
        notes = _what_is_cut(n_queries, n_keys)
        # Copies, so that a change of the caller's array can't change what is shown.
        self._table = table[..., :MOST_TOKENS, :MOST_TOKENS].astype("<f4")
        self._hidden = hidden[..., :MOST_TOKENS, :MOST_TOKENS]
        loaded = -1
        if self._table.nbytes > MOST_BYTES and n_layers > 1:
            loaded = layer
            notes.append(f"One of {n_layers} layers is held at a time; the others are on request.")
        finite = np.abs(self._table[np.isfinite(self._table)])
        values, bits = self._packed(loaded)
        super().__init__(
            values=values,
            hidden=bits,
            sizes=list(self._table.shape),
            tokens=words[:MOST_TOKENS],
            key_tokens=key_words[:MOST_TOKENS],
            layer=layer,
            head=head,
            loaded=loaded,
            kind=kind,
            reach=float(finite.max(initial=0.0)) or 1.0,
            title=title,
            note=" ".join(notes),
        )

    @traitlets.validate("layer", "head", "query", "key")
    def _within(self, proposal):
        name, value = proposal["trait"].name, proposal["value"]
        most = self._table.shape[("layer", "head", "query", "key").index(name)] - 1
        if value is not None and value > most:
            raise traitlets.TraitError(f"{name} is {value}, expected at most {most}")
        return value

    @traitlets.observe("layer")
    def _fetch(self, change) -> None:
        if self.loaded >= 0 and change.new != self.loaded:
            values, bits = self._packed(change.new)
            with self.hold_sync():
                self.loaded, self.hidden, self.values = change.new, bits, values

    def _packed(self, layer: int) -> tuple[bytes, bytes]:
        part = slice(None) if layer < 0 else slice(layer, layer + 1)
        hidden = self._hidden
        if not hidden.any():
            bits = b""
        elif hidden.ndim == 2:
            bits = packed_bits(hidden)
        else:
            bits = packed_bits(hidden[part])
        return float_bytes(np.where(np.isfinite(self._table[part]), self._table[part], 0.0)), bits

    def _now(self) -> tuple[np.ndarray, np.ndarray]:
        """The table of the chosen head, and its mask."""
        hidden = self._hidden
        if hidden.ndim > 2:
            hidden = hidden[self.layer, self.head]
        return self._table[self.layer, self.head], hidden

    def picture(self) -> Figure:
        table, hidden = self._now()
        return attention_heatmap(
            table, self.tokens, self.key_tokens, mask=~hidden, kind=self.kind, title=self.title
        ).figure

    def sentence(self) -> str:
        n_layers, n_heads, n_queries, n_keys = self.sizes
        what = "Attention weights" if self.kind == "weights" else "Attention scores"
        where = f", layer {self.layer} of {n_layers}" if n_layers > 1 else ""
        where += f", head {self.head} of {n_heads}" if n_heads > 1 else ""
        table, hidden = self._now()
        row = 0 if self.query is None else self.query
        best = int(np.where(hidden[row], -np.inf, table[row]).argmax())
        looks = f"looks most at {self.key_tokens[best]}, {table[row, best]:.2f}"
        if hidden[row].all():
            looks = "may look at nothing"
        said = (
            f"{what}{where}: {n_queries} queries by {n_keys} keys. The query {self.tokens[row]} "
            f"{looks}."
        )
        return f"{said} {self.note}".rstrip()


def _checked(weights, mask, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """The weights as (L, H, T, S), and what is hidden: (T, S), or (L, H, T, S) where it varies."""
    if kind not in ("weights", "scores"):
        raise ValueError(f"kind is {kind!r}, expected 'weights' or 'scores'")
    table = as_float_array(weights)
    if table.ndim not in (2, 3, 4) or 0 in table.shape:
        raise ValueError(
            f"weights {table.shape} are not (T, S), (H, T, S) or (L, H, T, S) with something in "
            "them: choose one example of the batch"
        )
    hidden = _hidden_by(mask, table.shape)
    if kind == "scores":
        hidden = hidden | (table == -np.inf)
    with np.errstate(over="ignore"):
        sent = table.astype(np.float32)  # as the page gets it
    wrong = np.isnan(sent) | (~np.isfinite(sent) & ~hidden) | (sent == np.inf)
    wish = "expected a number that float32 can hold, or -inf where a score is masked"
    if kind == "weights":
        wrong |= (sent < -1e-3) | (sent > 1 + 1e-2) | np.isinf(sent)
        wish = "weights lie between 0 and 1; for scores say kind='scores'"
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(f"{kind}{list(place)} is {table[place]:.4g}: {wish}")
    full = table.reshape((1,) * (4 - table.ndim) + table.shape)
    if kind == "weights":
        _warn_of_sums(full)
    if hidden.ndim > 2:
        hidden = np.broadcast_to(hidden, table.shape).reshape(full.shape)
    return full, hidden


def _hidden_by(mask, shape: tuple[int, ...]) -> np.ndarray:
    if mask is None:
        return np.zeros(shape[-2:], dtype=bool)
    mask = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
    if mask.dtype != bool:
        raise TypeError(f"mask is {mask.dtype}, expected bool: True where a query may look")
    try:
        if mask.ndim <= 2:
            return ~np.broadcast_to(mask, shape[-2:])
        return ~np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(f"mask {mask.shape} does not fit the weights' {shape}") from None


def _warn_of_sums(table: np.ndarray) -> None:
    sums = table.sum(axis=-1, dtype=np.float64)
    odd = np.argwhere((np.abs(sums - 1) > 0.02) & (np.abs(sums) > 0.02))
    if len(odd):
        layer, head, row = (int(i) for i in odd[0])
        warnings.warn(
            f"layer {layer}, head {head}, row {row} sums to {sums[layer, head, row]:.3g}: a row of "
            f"weights sums to 1, or to 0 where there is nothing to look at ({len(odd)} such rows)",
            stacklevel=4,
        )


def _what_is_cut(n_queries: int, n_keys: int) -> list[str]:
    if max(n_queries, n_keys) <= MOST_TOKENS:
        return []
    if n_queries == n_keys:
        return [f"The first {MOST_TOKENS} of {n_keys} tokens are shown."]
    shown = min(n_queries, MOST_TOKENS), min(n_keys, MOST_TOKENS)
    return [
        f"The first {shown[0]} of {n_queries} queries and {shown[1]} of {n_keys} keys are shown."
    ]

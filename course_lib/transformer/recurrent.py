"""What attention replaced: an LSTM that reads, an LSTM that writes, and one vector in between."""

from dataclasses import dataclass

import torch
from torch import nn

from course_lib.transformer.attention import row_softmax
from course_lib.transformer.checks import (
    check_fits,
    check_integers,
    check_mask,
    check_shapes,
    known_ids,
)


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """The sizes of a recurrent encoder-decoder.

    >>> RecurrentConfig(n_vocab=0, d_model=8)
    Traceback (most recent call last):
    ValueError: n_vocab 0 and d_model 8 must both be at least 1
    """

    n_vocab: int
    d_model: int
    attention: bool = False
    bidirectional: bool = False
    forget_bias: float = 0.0

    def __post_init__(self):
        if min(self.n_vocab, self.d_model) < 1:
            raise ValueError(
                f"n_vocab {self.n_vocab} and d_model {self.d_model} must both be at least 1"
            )
        if self.bidirectional and self.d_model % 2:
            raise ValueError(f"d_model {self.d_model} must be even for two directions")


class AdditiveAttention(nn.Module):
    """Score a decoder state against every encoder state by a small network, then average.

    Formula: ``scores[t, s] = v . tanh(W state[t] + U memory[s])``, softmax over s.

    Source: Bahdanau, Cho and Bengio 2015, section 3.1 and appendix A.1.2: their W_a, U_a, v_a
    are our ``query``, ``key``, ``score``.

    Shapes: ``state`` (B, T, D), ``memory`` (B, S, D), ``mask`` (B, S), True at real tokens
    -> ``z`` (B, T, D), ``weights`` (B, T, S).

    Errors: ValueError or TypeError where shapes or dtypes do not fit, naming them.

    >>> z, weights = AdditiveAttention(3)(torch.ones(1, 2, 3), torch.ones(1, 4, 3))
    >>> weights[0, 0]
    tensor([0.2500, 0.2500, 0.2500, 0.2500], grad_fn=<SelectBackward0>)
    """

    def __init__(self, d_model: int):
        super().__init__()
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.score = nn.Linear(d_model, 1, bias=False)

    def forward(self, state, memory, mask=None):
        check_shapes(state=(state, "BTD"), memory=(memory, "BSD"))
        check_fits(self.query.weight, state=state, memory=memory)
        check_mask(memory.shape[:2], mask=mask)
        pairs = self.query(state).unsqueeze(2) + self.key(memory).unsqueeze(1)  # (B, T, S, D)
        scores = self.score(torch.tanh(pairs)).squeeze(-1)  # (B, T, S)
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, :], -torch.inf)
        weights = row_softmax(scores)
        return weights @ memory, weights  # (B, T, D), (B, T, S)


class RecurrentEncoderDecoder(nn.Module):
    """Read the source with one LSTM, write the target with another, with or without attention.

    Without attention the source reaches the decoder through its first state alone: one vector
    (two, with the LSTM's cell) for a sentence of any length. With attention every step also
    takes a weighted mean of all encoder states.

    Source: Sutskever, Vinyals and Le 2014; with ``attention=True`` in the spirit of Bahdanau et
    al. 2015, with the attention read after the decoder's step (Luong et al. 2015, section 3).
    The encoder's last state is taken at each sentence's last real token (that of its backward
    direction, where it has one, at the first).

    Shapes: ``source`` (B, S), ``target`` (B, T) integers, ``source_mask`` (B, S), True at real
    tokens, which come first -> logits (B, T, V).

    Errors: ValueError for a source without tokens, or with padding before a real one, and for an
    id outside the vocabulary; ValueError or TypeError where shapes or dtypes do not fit.

    >>> model = RecurrentEncoderDecoder(RecurrentConfig(n_vocab=11, d_model=6, attention=True))
    >>> model(torch.ones(2, 5, dtype=torch.long), torch.ones(2, 3, dtype=torch.long)).shape
    torch.Size([2, 3, 11])
    """

    def __init__(self, config: RecurrentConfig):
        super().__init__()
        d_model, ways = config.d_model, 2 if config.bidirectional else 1
        self.embedding = nn.Embedding(config.n_vocab, d_model)
        self.encoder = nn.LSTM(
            d_model, d_model // ways, batch_first=True, bidirectional=config.bidirectional
        )
        self.decoder = nn.LSTM(d_model, d_model, batch_first=True)
        self.attention = AdditiveAttention(d_model) if config.attention else None
        self.output = nn.Linear(d_model * (2 if config.attention else 1), config.n_vocab)
        for lstm in (self.encoder, self.decoder):
            set_forget_bias(lstm, config.forget_bias)

    def forward(self, source, target, source_mask=None):
        return self.with_weights(source, target, source_mask)[0]

    def with_weights(self, source, target, source_mask=None):
        """Return the logits and the attention weights (B, T, S), None without attention."""
        memory, state = self.encode(source, source_mask)
        return self.decode(target, memory, state, source_mask)

    def embed(self, ids):
        """Return the embeddings of ids (B, T), (B, T, D)."""
        check_integers(ids=ids)
        with known_ids(ids, self.embedding.weight):
            return self.embedding(ids)

    def encode(self, source, source_mask=None):
        """Return all encoder states (B, S, D) and the last one as the decoder's first."""
        check_shapes(source=(source, "BS"))
        check_mask(source.shape, source_mask=source_mask)
        if not source.size(1):
            raise ValueError(f"source {tuple(source.shape)} has no token to read")
        lengths = torch.full(source.shape[:1], source.size(1))
        if source_mask is not None:
            if (source_mask[:, 1:] & ~source_mask[:, :-1]).any():
                raise ValueError(
                    "source_mask has padding before a real token: real ones come first"
                )
            lengths = source_mask.sum(-1).clamp_min(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embed(source), lengths, batch_first=True, enforce_sorted=False
        )
        memory, (hidden, cell) = self.encoder(packed)
        memory, _ = nn.utils.rnn.pad_packed_sequence(
            memory, batch_first=True, total_length=source.size(1)
        )
        return memory, (join_directions(hidden), join_directions(cell))

    def decode(self, target, memory, state, source_mask=None):
        """Return the logits (B, T, V) and the attention weights (B, T, S) or None."""
        check_shapes(target=(target, "BT"), memory=(memory, "BSD"))
        hidden, _ = self.decoder(self.embed(target), state)
        if self.attention is None:
            return self.output(hidden), None
        z, weights = self.attention(hidden, memory, source_mask)
        return self.output(torch.cat([hidden, z], dim=-1)), weights

    def reader(self, source, source_mask=None):
        """Read the source once, and return the function from targets (B, T) to logits."""
        memory, state = self.encode(source, source_mask)
        return lambda target: self.decode(target, memory, state, source_mask)[0]


def join_directions(state: torch.Tensor) -> torch.Tensor:
    """Put the last states of an LSTM's directions side by side, as one layer's first state.

    Shapes: ``state`` (directions, B, D / directions) -> (1, B, D).

    Errors: ValueError where an axis is missing.

    >>> join_directions(torch.zeros(2, 3, 5)).shape
    torch.Size([1, 3, 10])
    """
    check_shapes(state=(state, "WBD"))
    return state.transpose(0, 1).flatten(1).unsqueeze(0)


def set_forget_bias(lstm: nn.LSTM, value: float) -> None:
    """Start an LSTM's forget gates at ``value``: above 0 it begins by remembering.

    Source: Gers, Schmidhuber and Cummins 2000; Jozefowicz, Zaremba and Sutskever 2015 found
    that a bias of 1 helps. torch's gates stand in the order input, forget, cell, output, and it
    has two biases, which are added: the whole value goes into the first.

    >>> lstm = nn.LSTM(3, 2)
    >>> set_forget_bias(lstm, 3.0)
    >>> (lstm.bias_ih_l0 + lstm.bias_hh_l0)[2:4]
    tensor([3., 3.], grad_fn=<SliceBackward0>)
    """
    with torch.no_grad():
        for name, bias in lstm.named_parameters():
            if name.startswith("bias"):
                size = lstm.hidden_size
                bias[size : 2 * size] = value if name.startswith("bias_ih") else 0.0

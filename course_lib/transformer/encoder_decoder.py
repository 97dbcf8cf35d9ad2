"""The model of 2017: an encoder that reads, a decoder that writes, one table of embeddings."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from course_lib.transformer.attention import causal_mask, expand_key_mask
from course_lib.transformer.checks import (
    check_fits,
    check_integers,
    check_mask,
    check_shapes,
)
from course_lib.transformer.heads import MultiHeadAttention
from course_lib.transformer.layers import (
    EncoderLayer,
    FeedForward,
    post_norm_sublayer,
    pre_norm_sublayer,
)
from course_lib.transformer.positions import scaled_embedding, sinusoidal_positions


@dataclass(frozen=True, kw_only=True)
class Config:
    """The sizes of an encoder-decoder, in the order of the paper's Table 3.

    >>> Config(n_vocab=11, d_model=10, n_heads=3)
    Traceback (most recent call last):
    ValueError: d_model 10 is not divisible by n_heads 3
    """

    n_vocab: int
    n_layers: int = 6
    d_model: int = 512
    d_ff: int = 2048
    n_heads: int = 8
    dropout: float = 0.1
    norm_first: bool = False

    def __post_init__(self):
        sizes = {
            name: getattr(self, name)
            for name in ("n_vocab", "n_layers", "d_model", "d_ff", "n_heads")
        }
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name} {size} must be at least 1")
        if self.d_model % self.n_heads:
            raise ValueError(f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}")
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"dropout {self.dropout} is not in [0, 1)")

    @classmethod
    def base(cls, n_vocab: int = 37_000) -> "Config":
        """The base model of Table 3; about 37,000 byte-pair tokens for English-German."""
        return cls(n_vocab=n_vocab)

    @classmethod
    def big(cls, n_vocab: int = 37_000) -> "Config":
        """The big model of Table 3, with the dropout of its English-German run."""
        return cls(n_vocab=n_vocab, d_model=1024, d_ff=4096, n_heads=16, dropout=0.3)

    def n_parameters(self) -> int:
        """Count the parameters by formula: the embeddings once, biases, no output bias.

        >>> Config.base().n_parameters(), Config.big().n_parameters()
        (63082496, 214245376)
        """
        d, norm = self.d_model, 2 * self.d_model
        attention = 4 * (d * d + d)
        feed_forward = 2 * d * self.d_ff + self.d_ff + d
        encoder = attention + feed_forward + 2 * norm
        decoder = 2 * attention + feed_forward + 3 * norm
        final_norms = 2 * norm if self.norm_first else 0
        return self.n_vocab * d + self.n_layers * (encoder + decoder) + final_norms


class DecoderLayer(nn.Module):
    """Look at what is written, look at the source, then let each token think by itself.

    Formula: three sub-layers, each ``post_norm_sublayer`` as published in 2017, or
    ``pre_norm_sublayer`` with ``norm_first=True``.

    Source: Vaswani et al. 2017, section 3.1.

    Shapes: ``x`` (B, T, D), ``memory`` (B, S, D), masks boolean (True where a query may look),
    ``self_mask`` broadcastable to (B, H, T, T), ``memory_mask`` to (B, H, T, S) -> (B, T, D).

    Errors: ValueError or TypeError where shapes or dtypes do not fit, naming them.

    >>> layer = DecoderLayer(d_model=6, n_heads=2, d_ff=7)
    >>> layer(torch.ones(1, 3, 6), torch.ones(1, 5, 6), causal_mask(3)).shape
    torch.Size([1, 3, 6])
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        norm_first: bool = False,
    ):
        super().__init__()
        self.sublayer = pre_norm_sublayer if norm_first else post_norm_sublayer
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        return self.with_weights(x, memory, self_mask, memory_mask, need_weights=False)[0]

    def with_weights(self, x, memory, self_mask=None, memory_mask=None, *, need_weights=True):
        """Return the output and the weights of both attentions: (B, H, T, T), (B, H, T, S)."""
        check_fits(self.feed_forward.inner.weight, x=x, memory=memory)
        seen = []

        def look(attention, at, mask):
            def fn(y):
                source = y if at is None else at
                z, weights = attention(y, source, source, mask, need_weights=need_weights)
                seen.append(weights)
                return z

            return fn

        x = self.sublayer(x, look(self.self_attention, None, self_mask), self.norm1, self.drop)
        x = self.sublayer(x, look(self.cross_attention, memory, memory_mask), self.norm2, self.drop)
        return self.sublayer(x, self.feed_forward, self.norm3, self.drop), tuple(seen)


class Transformer(nn.Module):
    """The encoder-decoder of the paper, post-norm as published, one table for all embeddings.

    Formula: ``logits = decoder(embed(target), encoder(embed(source))) E^T`` with the table E
    (V, D) also under both embeddings; ``embed(ids) = dropout(E[ids] sqrt(D) + PE)``.

    Source: Vaswani et al. 2017, figure 1 and sections 3.1 to 3.5; the dropout of section 5.4
    on the embedding sums and on each sub-layer's output. Matrices start by Xavier's uniform
    rule and the table at a deviation of 1/sqrt(D): the course's choice, the paper names none.
    ``norm_first=True`` is pre-norm, and adds the final norm that a pre-norm stack needs.

    Shapes: ``source`` (B, S), ``target`` (B, T) integers, ``target`` already shifted right;
    ``source_mask`` (B, S) and ``target_mask`` (B, T), True at real tokens -> logits (B, T, V).

    Errors: ValueError for an id outside the vocabulary; ValueError or TypeError where shapes or
    dtypes do not fit, naming them.

    >>> model = Transformer(Config(n_vocab=11, n_layers=2, d_model=6, d_ff=7, n_heads=2))
    >>> ids = torch.ones(3, 5, dtype=torch.long)
    >>> model(ids, ids[:, :4]).shape
    torch.Size([3, 4, 11])
    """

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        sizes = config.d_model, config.n_heads, config.d_ff
        how = {"dropout": config.dropout, "norm_first": config.norm_first}
        final = nn.LayerNorm if config.norm_first else lambda d_model: nn.Identity()
        self.table = nn.Parameter(torch.empty(config.n_vocab, config.d_model))
        self.encoder = nn.ModuleList(EncoderLayer(*sizes, **how) for _ in range(config.n_layers))
        self.decoder = nn.ModuleList(DecoderLayer(*sizes, **how) for _ in range(config.n_layers))
        self.encoder_norm = final(config.d_model)
        self.decoder_norm = final(config.d_model)
        self.drop = nn.Dropout(config.dropout)
        self.initialise()

    def initialise(self) -> None:
        """Draw fresh weights: Xavier's uniform for matrices, zeros for their biases."""
        nn.init.normal_(self.table, std=self.config.d_model**-0.5)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, source, target, source_mask=None, target_mask=None):
        memory, _ = self.encode(source, source_mask, need_weights=False)
        return self.decode(target, memory, source_mask, target_mask, need_weights=False)[0]

    def embed(self, ids):
        """Return the scaled embeddings plus the positions, (B, T, D)."""
        check_shapes(ids=(ids, "BT"))
        positions = sinusoidal_positions(ids.size(1), self.config.d_model)
        return self.drop(scaled_embedding(ids, self.table) + positions.to(self.table))

    def encode(self, source, source_mask=None, *, need_weights=True):
        """Return the memory (B, S, D) and each layer's weights (B, H, S, S)."""
        check_shapes(source=(source, "BS"))
        check_mask(source.shape, source_mask=source_mask)
        mask = None if source_mask is None else expand_key_mask(source_mask)
        x, seen = self.embed(source), []
        for layer in self.encoder:
            x, weights = layer.with_weights(x, mask, need_weights=need_weights)
            seen.append(weights)
        return self.encoder_norm(x), seen

    def decode(self, target, memory, source_mask=None, target_mask=None, *, need_weights=True):
        """Return the logits (B, T, V) and each layer's pair of self- and cross-weights."""
        check_shapes(target=(target, "BT"), memory=(memory, "BSD"))
        check_mask(target.shape, target_mask=target_mask)
        check_mask(memory.shape[:2], source_mask=source_mask)
        self_mask = causal_mask(target.size(1)).to(target.device)
        if target_mask is not None:
            self_mask = self_mask & expand_key_mask(target_mask)
        memory_mask = None if source_mask is None else expand_key_mask(source_mask)
        x, seen = self.embed(target), []
        for layer in self.decoder:
            x, weights = layer.with_weights(
                x, memory, self_mask, memory_mask, need_weights=need_weights
            )
            seen.append(weights)
        return F.linear(self.decoder_norm(x), self.table), seen

    def reader(self, source, source_mask=None):
        """Read the source once, and return the function from targets (B, T) to logits."""
        memory, _ = self.encode(source, source_mask, need_weights=False)
        return lambda target: self.decode(target, memory, source_mask, need_weights=False)[0]


def shift_right(target: torch.Tensor, bos: int) -> torch.Tensor:
    """Make the decoder's input from the sentence it is to write: one step later, bos first.

    Formula: ``out[b, 0] = bos``, ``out[b, t] = target[b, t - 1]``.

    Source: Vaswani et al. 2017, section 3.1: "output embeddings are offset by one position".

    Shapes: ``target`` (B, T) integers -> (B, T).

    Errors: ValueError or TypeError where shapes or dtypes do not fit.

    >>> shift_right(torch.tensor([[5, 6, 7]]), bos=1)
    tensor([[1, 5, 6]])
    """
    check_shapes(target=(target, "BT"))
    check_integers(target=target)
    first = torch.full_like(target[:, :1], bos)
    return torch.cat([first, target[:, :-1]], dim=1)

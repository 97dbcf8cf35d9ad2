"""The known mistakes of the whole model."""

import torch
from torch.nn import functional as F

from course_lib.classroom.judge_parts import Mistake, Seen
from course_lib.classroom.properties import number, where
from course_lib.transformer.attention import causal_mask, expand_key_mask
from course_lib.transformer.encoder_decoder import Transformer
from course_lib.transformer.positions import scaled_embedding, sinusoidal_positions


class Model(Transformer):
    """The library's model with one step changed; the steps are the subclasses' to change."""

    def look_up(self, ids):
        return scaled_embedding(ids, self.table)

    def add_positions(self, x, stack):
        return x + sinusoidal_positions(x.size(1), x.size(2))

    def inputs(self, source, target):
        return source, target

    def masks(self, source_mask, target_mask, length):
        """Those of the encoder, the decoder's self-attention, and cross-attention."""
        theirs = None if source_mask is None else expand_key_mask(source_mask)
        mine = causal_mask(length)
        return theirs, mine if target_mask is None else mine & expand_key_mask(target_mask), theirs

    def read(self, x, mask):
        for layer in self.encoder:
            x = layer(x, mask)
        return x

    def write(self, x, memory, self_mask, memory_mask):
        for layer in self.decoder:
            x = layer(x, memory, self_mask, memory_mask)
        return x

    def finish(self, x):
        return F.linear(x, self.table)

    def forward(self, source, target, source_mask=None, target_mask=None):
        source, target = self.inputs(source, target)
        reads, looks_back, looks_across = self.masks(source_mask, target_mask, target.size(1))
        embedded = self.add_positions(self.look_up(source), "encoder")
        memory = self.read(embedded, reads)
        x = self.add_positions(self.look_up(target), "decoder")
        return self.finish(self.write(x, self.remember(memory, embedded), looks_back, looks_across))

    def remember(self, memory, embedded):
        return memory


def changed(**steps) -> type[Model]:
    return type("Transformer", (Model,), steps)


def _masked(pick):
    """``pick(encoder, self, cross, causal)`` gives the three masks."""

    def masks(self, source_mask, target_mask, length):
        three = Model.masks(self, source_mask, target_mask, length)
        return pick(*three, causal_mask(length), target_mask)

    return changed(masks=masks)


def _not(mask):
    return None if mask is None else ~mask


def _padding_alone(target_mask):
    return None if target_mask is None else expand_key_mask(target_mask)


def _without_positions(*stacks):
    def add_positions(self, x, stack):
        return x if stack in stacks else Model.add_positions(self, x, stack)

    return changed(add_positions=add_positions)


def _positions_before_the_scale(self, ids):
    x = F.embedding(ids, self.table)
    return (x + sinusoidal_positions(x.size(1), x.size(2))) * self.config.d_model**0.5


def _nothing_added(self, x, stack):
    return x


def _layer_by_layer(self, x, memory, self_mask, memory_mask):
    """Each decoder layer reads the encoder layer of its own depth; ``memory`` holds them all."""
    for layer, seen in zip(self.decoder, self.kept, strict=True):
        x = layer(x, seen, self_mask, memory_mask)
    return x


def _keeps_all(self, x, mask):
    self.kept = []
    for layer in self.encoder:
        x = layer(x, mask)
        self.kept.append(x)
    return x


def _first_only(name):
    def run(self, x, *rest):
        return getattr(self, name)[0](x, *rest)

    return run


def _first_repeated(name):
    def run(self, x, *rest):
        stack = getattr(self, name)
        for _ in stack:
            x = stack[0](x, *rest)
        return x

    return run


def _backwards(name):
    def run(self, x, *rest):
        for layer in reversed(getattr(self, name)):
            x = layer(x, *rest)
        return x

    return run


def _embedding_each_time(self, x, memory, self_mask, memory_mask):
    start = x
    for layer in self.decoder:
        x = layer(start, memory, self_mask, memory_mask)
    return x


def _encoder_embedding_each_time(self, x, mask):
    start = x
    for layer in self.encoder:
        x = layer(start, mask)
    return x


def _shifted(target):
    return torch.cat([torch.zeros_like(target[:, :1]), target[:, :-1]], 1)


def _saw_first_logit(seen: Seen) -> str | None:
    yours, right = seen.yours("logits"), seen.right("logits")
    if not seen.comparable("logits"):
        return None
    off = (yours - right).abs().max().item()
    if not off > 1e-3:
        return None
    return f"{where(seen)}, your logits are off by up to {number(off)}."


def _saw_sums(seen: Seen) -> str | None:
    yours, right = seen.yours("logits"), seen.right("logits")
    if not seen.comparable("logits") or not torch.isfinite(yours).all():
        return None
    sums = yours.sum(-1)
    if not torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
        return None
    if torch.allclose(right.sum(-1), torch.ones_like(sums), atol=1e-2):
        return None
    return f"{where(seen)}, your logits sum to 1 at every position: they are probabilities."


def _known(name, title, means, next_step, *versions, saw=_saw_first_logit, **more) -> Mistake:
    texts = {"title": title, "means": means, "next_step": next_step}
    return Mistake(name=name, versions=versions, saw=saw, **texts, **more)


_POSITIONS = "Without positions attention sees a bag of words (lesson 04)."

MISTAKES = (
    _known(
        "not_scaled", "does not multiply the embeddings by the root of d_model",
        "The paper's section 3.4 scales them, in both stacks.", "Use `scaled_embedding`.",
        changed(look_up=lambda self, ids: F.embedding(ids, self.table)),
    ),
    _known(
        "divided", "divides the embeddings by the root of d_model",
        "That is attention's scale. Embeddings are multiplied.", "Use `scaled_embedding`.",
        changed(look_up=lambda self, ids: F.embedding(ids, self.table) / self.config.d_model**0.5),
    ),
    _known(
        "scaled_by_d_model", "multiplies the embeddings by d_model",
        "The root is missing.", "Use `scaled_embedding`.",
        changed(look_up=lambda self, ids: F.embedding(ids, self.table) * self.config.d_model),
    ),
    _known(
        "scaled_after_the_positions", "adds the positions before it scales",
        "The positions are then scaled too.", "Scale the embeddings alone, then add.",
        changed(look_up=_positions_before_the_scale, add_positions=_nothing_added),
    ),
    _known(
        "no_positions", "adds no positions", _POSITIONS, "What is added to the embeddings?",
        _without_positions("encoder", "decoder"),
    ),
    _known(
        "no_positions_in_the_encoder", "adds positions in the decoder alone", _POSITIONS,
        "Embed both sides in the same way: one helper for both.", _without_positions("encoder"),
    ),
    _known(
        "no_positions_in_the_decoder", "adds positions in the encoder alone", _POSITIONS,
        "Embed both sides in the same way: one helper for both.", _without_positions("decoder"),
    ),
    _known(
        "positions_multiplied", "multiplies by the positions instead of adding them",
        "A sine is 0 at position 0: half of the features are lost there.", "Add.",
        changed(add_positions=lambda self, x, s: x * sinusoidal_positions(x.size(1), x.size(2))),
    ),
    _known(
        "no_causal_mask", "lets the decoder look at the future",
        "It reads the words that it should guess.",
        "Which mask stands in the decoder's self-attention, with padding or without?",
        _masked(lambda reads, back, across, causal, t: (reads, _padding_alone(t), across)),
    ),
    _known(
        "target_mask_instead_of_causal", "uses the target mask instead of the causal one, where "
        "there is a target mask",
        "The two belong together: a key must be past and real.", "Join them with `&`.",
        _masked(
            lambda reads, back, across, causal, t: (
                reads, causal if t is None else _padding_alone(t), across,
            )
        ),
    ),
    _known(
        "target_mask_or_causal", "joins the causal mask and the target mask by `|`",
        "A key is then seen where either allows it: the future leaks.",
        "A key must be past **and** real.",
        _masked(
            lambda reads, back, across, causal, t: (
                reads, causal if t is None else causal | _padding_alone(t), across,
            )
        ),
    ),
    _known(
        "target_mask_ignored", "never uses the target mask",
        "With padding at the end only padded positions come out otherwise, and the loss leaves "
        "them out; with padding anywhere else real ones would too.",
        "Join the two masks with `&`.",
        _masked(lambda reads, back, across, causal, t: (reads, causal, across)),
    ),
    _known(
        "anti_causal", "lets the decoder look at itself and the future, not at the past",
        "The triangle is upside down.", "Row 0 may see position 0 alone.",
        _masked(
            lambda reads, back, across, causal, t: (
                reads, causal.mT if t is None else causal.mT & _padding_alone(t), across,
            )
        ),
    ),
    _known(
        "causal_source", "gives the encoder a causal mask",
        "The source is known as a whole: each of its words may look at every other.",
        "Which mask does the encoder need, beside that of padding?",
        changed(
            read=lambda self, x, mask: Model.read(
                self, x, causal_mask(x.size(1)) if mask is None else causal_mask(x.size(1)) & mask
            )
        ),
    ),
    _known(
        "source_mask_ignored_in_the_encoder", "does not hand the source mask to the encoder",
        "Real words then look at padding.", "Both stacks need it.",
        _masked(lambda reads, back, across, causal, t: (None, back, across)),
    ),
    _known(
        "source_mask_ignored_in_cross_attention",
        "does not hand the source mask to cross-attention",
        "The decoder then reads the source's padding.", "Both stacks need it.",
        _masked(lambda reads, back, across, causal, t: (reads, back, None)),
    ),
    _known(
        "source_mask_ignored", "never uses the source mask",
        "Padding is read in both stacks.", "Where does the source's padding matter?",
        _masked(lambda reads, back, across, causal, t: (None, back, None)),
    ),
    _known(
        "source_mask_inverted", "reads the source's padding and nothing else",
        "True means *may look* here. `nn.Transformer` has the other sense.",
        "Hand the mask on as it is.",
        _masked(lambda reads, back, across, causal, t: (_not(reads), back, _not(across))),
    ),
    _known(
        "target_shifted_again", "shifts the target once more",
        "It comes shifted already; a second time every word is two steps late.",
        "Embed the target as it comes.",
        changed(inputs=lambda self, source, target: (source, _shifted(target))),
    ),
    _known(
        "decoder_reads_the_source", "embeds the source in the decoder too",
        "The target is never read.", "What goes into the decoder?",
        changed(inputs=lambda self, source, target: (source, source)),
        saw=None,
    ),
    _known(
        "encoder_reads_the_target", "embeds the target in the encoder too",
        "The source is never read, and cross-attention sees the future of the target.",
        "What goes into the encoder?",
        changed(inputs=lambda self, source, target: (target, target)),
        saw=None,
    ),
    _known(
        "memory_is_the_embedded_source", "lets cross-attention read the embedded source",
        "What the encoder has worked out is not used.", "What comes out of the last encoder layer?",
        changed(remember=lambda self, memory, embedded: embedded),
    ),
    _known(
        "layer_by_layer", "lets each decoder layer read the encoder layer of its own depth",
        "In the paper every decoder layer reads the same: the encoder's last output.",
        "First run the whole encoder, then the decoder.",
        changed(read=_keeps_all, write=_layer_by_layer),
    ),
    _known(
        "first_encoder_layer_alone", "uses the encoder's first layer alone",
        "The others are there and never called.", "Is there a `for` over the encoder?",
        changed(read=_first_only("encoder")),
    ),
    _known(
        "first_decoder_layer_alone", "uses the decoder's first layer alone",
        "The others are there and never called.", "Is there a `for` over the decoder?",
        changed(write=_first_only("decoder")),
    ),
    _known(
        "first_encoder_layer_repeated", "calls the encoder's first layer again and again",
        "Each layer has weights of its own.", "Which layer does your loop call?",
        changed(read=_first_repeated("encoder")),
    ),
    _known(
        "first_decoder_layer_repeated", "calls the decoder's first layer again and again",
        "Each layer has weights of its own.", "Which layer does your loop call?",
        changed(write=_first_repeated("decoder")),
    ),
    _known(
        "encoder_backwards", "runs the encoder's layers last to first",
        "The memory would come out of layer 0.", "In which order does the loop go?",
        changed(read=_backwards("encoder")),
    ),
    _known(
        "decoder_backwards", "runs the decoder's layers last to first",
        "The logits would come out of layer 0.", "In which order does the loop go?",
        changed(write=_backwards("decoder")),
    ),
    _known(
        "encoder_starts_anew", "hands the embedded source to every encoder layer",
        "A layer should read what the layer below has made.",
        "Which name stands on both sides of the line in the loop?",
        changed(read=_encoder_embedding_each_time),
    ),
    _known(
        "decoder_starts_anew", "hands the embedded target to every decoder layer",
        "A layer should read what the layer below has made.",
        "Which name stands on both sides of the line in the loop?",
        changed(write=_embedding_each_time),
    ),
    _known(
        "softmax_at_the_end", "returns probabilities instead of logits",
        "The loss takes logits and makes the softmax itself; twice is once too often.",
        "Leave out the softmax.",
        changed(finish=lambda self, x: F.linear(x, self.table).softmax(-1)),
        saw=_saw_sums,
    ),
    _known(
        "log_softmax_at_the_end", "returns log-probabilities instead of logits",
        "A loss that takes logits would give the same, and temperature would too; logits were "
        "asked for.", "Leave out the log_softmax.",
        changed(finish=lambda self, x: F.linear(x, self.table).log_softmax(-1)),
    ),
    _known(
        "logits_scaled", "scales the logits by the root of d_model too",
        "Only the two embeddings are scaled: section 3.4.", "The table as it is, at the end.",
        changed(finish=lambda self, x: F.linear(x, self.table) * self.config.d_model**0.5),
        changed(finish=lambda self, x: F.linear(x, self.table) / self.config.d_model**0.5),
    ),
    _known(
        "final_norm", "normalises once more before the logits",
        "That norm belongs to pre-norm stacks. In post-norm each layer ends with a norm already.",
        "What comes out of the last layer goes to the table.",
        changed(finish=lambda self, x: F.linear(F.layer_norm(x, x.shape[-1:]), self.table)),
    ),
    _known(
        "no_logits", "returns the decoder's vectors instead of logits",
        "One number per word of the vocabulary is asked for.", "Multiply by the table, transposed.",
        changed(finish=lambda self, x: x), saw=None,
    ),
    _known(
        "memory_detached", "cuts the gradient between decoder and encoder",
        "The encoder would never learn.", "Hand the memory on as it is.",
        changed(remember=lambda self, memory, embedded: memory.detach()), saw=None,
    ),
    _known(
        "output_table_detached", "cuts the gradient of the table at the logits",
        "The table would learn from its look-ups alone.", "Use the table itself at the end too.",
        changed(finish=lambda self, x: F.linear(x, self.table.detach())), saw=None,
    ),
)  # fmt: skip

"""Attention by Hand: the Transformer of "Attention Is All You Need", built part by part.

Axes, one name each, here and in every lesson:

=====  ==========================================
``B``  batch
``T``  query position (the tokens that look)
``S``  key position (the tokens that are looked at)
``D``  ``d_model``, the width of the model
``H``  ``n_heads``, the heads
``K``  ``d_head``, the width of one head
``F``  ``d_ff``, the hidden width of a feed-forward network
``V``  ``n_vocab``, the vocabulary; beside q and k alone, the width of a value (``d_v``)
=====  ==========================================

Tensors carry the paper's letters: ``q``, ``k``, ``v``. ``scores`` stand before the softmax,
``weights`` after it, ``z`` is what attention returns.

A boolean ``mask`` is True where a query **may look**. ``F.scaled_dot_product_attention`` has the
same sense; ``nn.MultiheadAttention`` has the opposite one, True there means "may not look".
A query with nothing to look at gets zero weights and a zero output, never NaN.
"""


def doctor() -> None:
    """Print what a bug report needs, and a remedy for each fault."""
    from course_lib import health

    print(health.report(health.examine(health.all_checks())))

"""The exercises and their banks of known mistakes.

How to add one:

1. Make a module here, or add to the one of its kind::

       CAUSAL_MASK = Exercise(
           name="causal_mask",                # the library's name, which check() finds it by
           signature="causal_mask(n)",
           arguments=("n",),
           results=("mask",),                 # several results come as a tuple
           reference=causal_mask,             # the library's own function
           probes=(
               Probe(name="five positions", make=lambda: (5,)),
               Probe(name="one position", make=lambda: (1,), core=False),
           ),
           mistakes=(
               Mistake(
                   name="anti_causal",
                   title="lets each position look at itself and the future",
                   versions=(lambda n: torch.ones(n, n, dtype=torch.bool).triu(),),
                   saw=row_zero_sees_the_end,
                   means="A model trained so reads the word that it should guess.",
                   next_step="Write down by hand what row 0 should be, then row 1.",
               ),
           ),
       )

2. Name it in ``EXERCISES`` below, in the order of the course.

Probes: sizes all different and prime, so that a swapped axis can't hide; ``make`` is called once
and must leave the global random state alone (give ``torch.rand`` a generator). Edges (dead rows,
half precision, extremes) are ``core=False``. ``grads=True`` compares gradients too.
``raises=ValueError`` asks for that error.

Mistakes: a learner's function that equals one of ``versions`` on every probe is named so; two
mistakes that compute the same function are named together, by themselves. ``title`` completes
"a function that ...". ``saw`` gets a ``Seen`` (probe, the learner's results by ``yours(name)``,
the right ones by ``right(name)``, arguments by ``args``) and returns a sentence with numbers, or
None where it does not hold; without it the first differing entry is told. ``next_step`` is not
the answer. ``convention=True`` for what is right elsewhere.

Properties, for what no known mistake fits: functions from ``Seen`` to a true sentence or None;
``relations`` get all probes at once. Those of ``course_lib.classroom.properties`` (form, shape,
dtype, NaN, changed arguments, gradients) are asked of every exercise and need no naming.

A module (``nn.Module``) is an exercise with ``call=call_module(LibraryModule)`` (of
``course_lib.classroom.judge_module``) and probes whose ``build`` holds the constructor's arguments.

The tests in ``tests/classroom`` for every exercise: the reference passes, each mistake is
rejected and named, right versions written another way pass.
"""

from course_lib.classroom.exercise import Exercise
from course_lib.classroom.exercises import (
    attention,
    beam_score,
    cross_attention,
    decoder_layer,
    encoder_layer,
    greedy_decoding,
    heads,
    label_smoothing,
    learning_rate,
    masks,
    multi_head_attention,
    norms,
    positions,
    shift_right,
    softmax,
    sublayers,
    whole_transformer,
)

EXERCISES: dict[str, Exercise] = {
    exercise.name: exercise
    for exercise in (
        softmax.ROW_SOFTMAX,
        softmax.SOFT_LOOKUP,
        masks.CAUSAL_MASK,
        masks.PADDING_MASK,
        masks.EXPAND_KEY_MASK,
        masks.CACHED_CAUSAL_MASK,
        attention.EXERCISE,
        heads.SPLIT_HEADS,
        heads.MERGE_HEADS,
        multi_head_attention.EXERCISE,
        cross_attention.EXERCISE,
        positions.SINUSOIDAL_POSITIONS,
        positions.SCALED_EMBEDDING,
        norms.LAYER_NORM,
        norms.POSITION_WISE_FFN,
        sublayers.POST_NORM_SUBLAYER,
        sublayers.PRE_NORM_SUBLAYER,
        encoder_layer.ENCODER_LAYER,
        shift_right.SHIFT_RIGHT,
        decoder_layer.EXERCISE,
        whole_transformer.EXERCISE,
        label_smoothing.EXERCISE,
        learning_rate.EXERCISE,
        greedy_decoding.EXERCISE,
        beam_score.EXERCISE,
    )
}

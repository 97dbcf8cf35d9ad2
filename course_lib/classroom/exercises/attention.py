"""The exercise ``scaled_dot_product_attention``."""

from course_lib.classroom.exercise import Exercise
from course_lib.classroom.exercises.attention_mistakes import MISTAKES, pairs
from course_lib.classroom.exercises.attention_probes import PROBES
from course_lib.classroom.exercises.attention_properties import PROPERTIES, RELATIONS
from course_lib.transformer.attention import scaled_dot_product_attention

EXERCISE = Exercise(
    name="scaled_dot_product_attention",
    signature="scaled_dot_product_attention(q, k, v, mask=None)",
    arguments=("q", "k", "v", "mask"),
    results=("z", "weights"),
    reference=scaled_dot_product_attention,
    probes=PROBES,
    mistakes=MISTAKES,
    properties=PROPERTIES,
    relations=RELATIONS,
    pairs=pairs,
)

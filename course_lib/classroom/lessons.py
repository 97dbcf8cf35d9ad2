"""The lessons that there are: what each asks, how long it takes, and what is built in it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Lesson:
    """One notebook of the course."""

    number: str
    file: str
    title: str
    question: str
    minutes: int
    exercises: tuple[str, ...]


LESSONS = (
    Lesson(
        "00",
        "00_start_here.ipynb",
        "Start here",
        "What will I hold at the end, and how does a lesson work?",
        35,
        ("row_softmax",),
    ),
    Lesson(
        "01",
        "01_why_attention.ipynb",
        "Why attention?",
        "Networks read sentences long before the Transformer. What was wrong with how they did it?",
        60,
        ("soft_lookup",),
    ),
    Lesson(
        "02",
        "02_scaled_dot_product_attention.ipynb",
        "Scaled dot-product attention",
        "How does a word find the other words that matter to it, and what does it bring back "
        "from them?",
        55,
        ("causal_mask", "padding_mask", "scaled_dot_product_attention"),
    ),
    Lesson(
        "03",
        "03_multi_head_attention.ipynb",
        "Multi-head attention",
        "One attention brings back one average. How does a word ask several questions at once?",
        60,
        ("split_heads", "merge_heads", "MultiHeadAttention", "cross_attention"),
    ),
    Lesson(
        "04",
        "04_positional_encoding.ipynb",
        "Positional encoding",
        "Attention sees a bag of words. How does it learn which word comes first?",
        45,
        ("sinusoidal_positions", "scaled_embedding"),
    ),
    Lesson(
        "05",
        "05_feed_forward_residuals_layernorm.ipynb",
        "Feed-forward, residuals and LayerNorm",
        "Attention gathers. What works on what was gathered, and what keeps a deep stack "
        "trainable?",
        65,
        (
            "layer_norm",
            "position_wise_ffn",
            "post_norm_sublayer",
            "pre_norm_sublayer",
            "EncoderLayer",
        ),
    ),
    Lesson(
        "06",
        "06_the_encoder_decoder.ipynb",
        "The encoder-decoder",
        "You have every part. How do they become one model that reads a sentence and writes "
        "another?",
        75,
        ("shift_right", "expand_key_mask", "DecoderLayer", "Transformer"),
    ),
    Lesson(
        "07",
        "07_train_a_translator.ipynb",
        "Train a translator",
        "You hold a Transformer that knows nothing. How does it learn to translate, and how do "
        "you know that it did?",
        75,
        ("label_smoothing_loss", "noam_learning_rate", "greedy_decode", "beam_score"),
    ),
)

# The order in which the parts stand in the learner's file: each after those it may use.
PART_ORDER = tuple(name for lesson in LESSONS for name in lesson.exercises)

"""Put a model together from the learner's own parts; what is missing comes from the library."""

import html
import inspect
import re
import types
from collections.abc import Callable

from course_lib.classroom.learner_file import FILE, passed_parts, run_file
from course_lib.transformer import attention, checks, encoder_decoder, heads, layers, positions

# Each uses those before it.
_MODULES = (checks, attention, heads, positions, layers, encoder_decoder)
USED = (
    "causal_mask",
    "expand_key_mask",
    "scaled_dot_product_attention",
    "split_heads",
    "merge_heads",
    "MultiHeadAttention",
    "sinusoidal_positions",
    "scaled_embedding",
    "post_norm_sublayer",
    "EncoderLayer",
    "shift_right",
    "DecoderLayer",
    "Transformer",
)


class Parts:
    """The parts of a Transformer by name, as attributes, and whose each of them is.

    ``origin`` maps each name to "yours" or "the library's". ``note`` says what was wrong with the
    learner's file, where something was.
    """

    def __init__(self, space: dict, origin: dict[str, str], note: str):
        self.__dict__.update(space)
        self.origin, self.note = origin, note

    def __repr__(self) -> str:
        lines = [f"{name:30} {whose}" for name, whose in self.origin.items()]
        return "\n".join([*lines, *([self.note] if self.note else [])])

    def _repr_html_(self) -> str:
        cell = "text-align:left;padding:2px 24px 2px 0"
        rows = "".join(
            f'<tr><th scope="row" style="{cell};font-weight:normal"><code>{html.escape(name)}'
            f'</code></th><td style="{cell}">{"<b>yours</b>" if whose == "yours" else whose}</td>'
            "</tr>"
            for name, whose in self.origin.items()
        )
        note = f"<p>{html.escape(self.note)}</p>" if self.note else ""
        return (
            '<table style="text-align:left"><caption style="text-align:left">The parts of this '
            f"model</caption>{rows}</table>{note}"
        )


def assemble() -> Parts:
    """Assemble the 2017 model from the passed parts in ``my_transformer.py``.

    Each part that is missing there is the library's, and is named so. A library part calls the
    learner's parts where there are any: its encoder layer uses the learner's attention.
    """
    space: dict = {"__name__": "assembled"}
    for module in _MODULES:
        exec(compile(_without_own_imports(module), module.__file__, "exec"), space)
    space["Config"] = encoder_decoder.Config
    mine, note = _learners()
    space.update(mine)
    origin = {name: "yours" if name in mine else "the library's" for name in USED}
    return Parts(space, origin, note)


def _without_own_imports(module: types.ModuleType) -> str:
    """The module's source, line by line as it stands, without its imports from the course."""
    return re.sub(
        r"(?m)^from course_lib\S* import (?:\([^)]*\)|[^\n]*)\n",
        lambda found: "\n" * found[0].count("\n"),
        inspect.getsource(module),
    )


def _learners() -> tuple[dict[str, object], str]:
    """The learner's passed parts, out of their file, and a sentence where it does not run."""
    passed = [name for name in USED if name in passed_parts()]
    if not passed:
        return {}, ""
    try:
        space = run_file()
    except (Exception, SystemExit) as error:
        return {}, (
            f"{FILE} does not run ({type(error).__name__}: {error}), so none of its parts is used. "
            "Mend that line, or pass the part again."
        )
    for name in passed:  # in place: the learner's parts call each other
        space[name] = _fitted(name, space[name])
    return {name: space[name] for name in passed}, ""


def _fitted(name: str, part: Callable) -> Callable:
    """Let a learner's part be called as the library calls its own."""
    if name == "MultiHeadAttention":
        return _fitted_attention(part)
    if name in ("EncoderLayer", "DecoderLayer"):
        return _fitted_layer(part)
    return part


def _fitted_attention(part: type) -> type:
    if "need_weights" in inspect.signature(part.forward).parameters:
        return part

    class MultiHeadAttention(part):
        def forward(self, query, key, value, mask=None, *, need_weights=True):
            return super().forward(query, key, value, mask)

    return MultiHeadAttention


def _fitted_layer(part: type) -> type:
    """A layer with the library's options, and with the weights that its attentions gave."""
    if hasattr(part, "with_weights"):
        return part

    def build(self, d_model, n_heads, d_ff, *, dropout=0.0, norm_first=False):
        if dropout or norm_first:
            raise ValueError(
                f"your {part.__name__} is post-norm and has no dropout: build the model with "
                f"dropout=0.0 and norm_first=False, not {dropout} and {norm_first}"
            )
        part.__init__(self, d_model, n_heads, d_ff)

    def with_weights(self, *inputs, need_weights=True):
        seen: list = []
        names = [name for name in ("self_attention", "cross_attention") if hasattr(self, name)]
        hooks = [
            getattr(self, name).register_forward_hook(lambda m, given, out: seen.append(out[1]))
            for name in names
        ]
        try:
            x = self(*inputs)
        finally:
            for hook in hooks:
                hook.remove()
        return x, tuple(seen) if len(names) > 1 else (seen[0] if seen else None)

    return type(part.__name__, (part,), {"__init__": build, "with_weights": with_weights})

"""Say what an exception of a learner's code means, in a plain sentence."""

import re

from course_lib.classroom.judge_parts import Raised, Seen
from course_lib.classroom.lessons import PART_ORDER
from course_lib.classroom.properties import where

# A pattern in torch's or Python's message, and what it means. The first that is found counts.
_MEANINGS = (
    (r"can't allocate memory|out of memory", "It asked for more memory than the check allows."),
    (
        r"mat1 and mat2 shapes|size mismatch|Expected size for first two dimensions|"
        r"inconsistent tensor size|einsum\(\): operands do not broadcast|"
        r"einsum\(\): subscript",
        "In a matrix product the last axis of the left side must be as long as the second-last "
        "axis of the right side. Print both shapes just before this line.",
    ),
    (
        r"must match the size of tensor|not broadcastable|shape mismatch|"
        r"doesn't match the broadcast shape",
        "Two tensors meet entry by entry, and an axis has two different lengths (1 would "
        "stretch). Print both shapes just before this line.",
    ),
    (
        r"shape of the mask .* does not match|too many indices|boolean index did not match",
        "Square brackets do not broadcast: a mask in them must have the very shape of the tensor "
        "that it picks from. `masked_fill` and `torch.where` broadcast.",
    ),
    (
        r"cannot be converted to type .*Half.* without overflow|without overflow",
        "That number is too large for float16, whose largest is 65504. There is a value that "
        "every floating dtype can hold.",
    ),
    (
        r"same dtype|expected scalar type|should have the same dtype|Expected .* dtype",
        "Two tensors of different dtypes meet in a product. Something on the way changed the "
        "dtype of the input.",
    ),
    (
        r"Dimension out of range|Dimension specified as",
        "An axis is named that this input does not have: it has fewer axes than the line takes "
        "for granted. Counting from the end (-1, -2) works for any number of leading axes.",
    ),
    (
        r"Subtraction, the `-` operator, with",
        "A boolean mask can't be subtracted; `~mask` turns True and False around.",
    ),
    (
        r"bitwise_not|`~`|bad operand type for unary",
        "`~` needs a tensor of True and False.",
    ),
    (
        r"only supports boolean masks|expects? a bool|BoolTensor",
        "`masked_fill` needs a tensor of True and False.",
    ),
    (
        r"values to unpack",
        "The number of names on the left differs from the number of axes. An input may have two, "
        "three, four or more axes; the last two are always there.",
    ),
    (
        r"shape '.*' is invalid|view size is not compatible|cannot reshape",
        "The new shape doesn't hold as many numbers as the tensor, or the tensor doesn't lie in "
        "memory in that order (`reshape` copes with the latter).",
    ),
    (
        r"a leaf Variable|modified by an inplace operation",
        "A tensor that is needed for the gradient was changed in place. Make a new tensor instead.",
    ),
    (
        r"number of dims don't match|must be 3D|must be a matrix|2D tensor|expects a tensor with",
        "This operation takes a fixed number of axes, and the input has another number of them.",
    ),
    (
        r"takes \d+ positional argument|missing \d+ required|unexpected keyword|"
        r"positional arguments but",
        "Compare the names in the `def` line with the call.",
    ),
    (
        r"unsupported operand .*'tuple'|'tuple' object has no attribute|not tuple",
        "A pair is used where a tensor is needed. Attention gives two results: take them apart, "
        "`z, weights = ...`.",
    ),
    (
        r"before Module\.__init__\(\) call",
        "The first line of a module's `__init__` is `super().__init__()`.",
    ),
    (
        r"Boolean value of Tensor",
        "An `if` met a tensor of many values. Ask `is None` about the argument, or use "
        "`torch.where` to choose entry by entry.",
    ),
    (
        r"'NoneType' object|NoneType",
        "Something is None here: an argument that was not given, or a function without `return`.",
    ),
    (r"numpy\(\) on Tensor that requires grad", "Stay with torch: numpy knows no gradients."),
)

_BY_KIND = {
    "UnboundLocalError": "The name is read before any line that ran has given it a value.",
    "NameError": "No line above gives that name a value. Is it spelled as in the `def` line, and "
    "is everything imported?",
    "AttributeError": "There is no such method or attribute. Look at the spelling.",
    "ModuleNotFoundError": "That module is not installed here.",
    "RecursionError": "The function calls itself and never comes to an end.",
    "MemoryError": "It asked for more memory than the check allows.",
    "ZeroDivisionError": "A division by zero.",
    "IndexError": "An index lies outside of its axis.",
    "SystemExit": "The code asked Python to end. A function gives its result by `return`.",
    "KeyboardInterrupt": "The code raised an interrupt itself.",
}


def describe_raised(seen: Seen) -> str:
    """Name the exception, the learner's own line, and what such an exception means.

    >>> explain(Raised("NameError", "name 'sofmax' is not defined", kinds=("NameError",)))[:42]
    'No line above gives that name a value. Is '
    """
    error = seen.outcome.error
    if "RecursionError" in error.kinds:
        said = error.kind
    else:
        said = f"{error.kind}: {_shorten(error.message)}" if error.message else error.kind
    place = ""
    if error.line_number is not None:
        place = f" in line {error.line_number}"
        if error.line:
            place += f", `{error.line}`"
    return f"{where(seen)}, your code stopped{place}: {said}. {explain(error)}".strip()


def explain(error: Raised) -> str:
    """What an exception means, in a sentence; empty where we know no better than its message."""
    kinds = [kind for kind in error.kinds if kind in _BY_KIND]
    if kinds and kinds[0] == "NameError" and (name := _named(error.message)) in PART_ORDER:
        return (
            f"`{name}` is a part of the course: `from my_transformer import {name}` brings in "
            "yours, once it has passed."
        )
    if kinds and kinds[0] not in ("AttributeError", "IndexError"):
        return _BY_KIND[kinds[0]]
    for pattern, meaning in _MEANINGS:
        if re.search(pattern, error.message):
            return meaning
    return _BY_KIND[kinds[0]] if kinds else ""


def _named(message: str) -> str:
    """The name in a NameError's message."""
    found = re.search(r"name '(\w+)' is not defined", message)
    return found.group(1) if found else ""


def _shorten(message: str) -> str:
    line = message.split("Hint:")[0].strip()
    line = line.splitlines()[0] if line else ""
    return (line if len(line) <= 200 else line[:200] + " ...").rstrip(". ")

"""The source of what a learner wrote, in a notebook's cell too."""

import ast
import inspect
import linecache
import textwrap
import types


def source_of(part) -> str:
    """The source of a function or class, at the left margin.

    ``inspect`` does not find a class that was defined in a notebook's cell; its methods know the
    cell that they came from.

    Errors: OSError where the source can't be had.

    >>> source_of(source_of).splitlines()[0]
    'def source_of(part) -> str:'
    """
    if isinstance(part, type):
        found = _class_in_its_cell(part)
        if found is not None:
            return found
    try:
        return textwrap.dedent(inspect.getsource(part)).strip()
    except TypeError as error:
        raise OSError(str(error)) from None


def _class_in_its_cell(part: type) -> str | None:
    for method in vars(part).values():
        code = getattr(method, "__code__", None)
        if not isinstance(code, types.CodeType) or method.__module__ != part.__module__:
            continue
        text = "".join(linecache.getlines(code.co_filename))
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name == part.__name__:
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                if first <= code.co_firstlineno <= node.end_lineno:
                    lines = text.splitlines()[first - 1 : node.end_lineno]
                    return textwrap.dedent("\n".join(lines)).strip()
    return None

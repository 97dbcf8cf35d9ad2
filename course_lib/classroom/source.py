"""The source of what a learner wrote, in a notebook's cell too."""

import ast
import inspect
import linecache
import re
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


def without_checks(source: str) -> str:
    r"""The library's source of a part without what only checks its inputs.

    Calls of ``check_...`` go, and ``with known_ids(...)`` gives its block back. Where nothing is
    raised any more, the paragraph of the docstring on errors goes too.

    >>> print(without_checks("def f(x):\n    check_numbers(x=x)\n    return x"))
    def f(x):
        return x
    """
    lines = source.splitlines()
    for node in sorted(ast.walk(ast.parse(source)), key=lambda n: -getattr(n, "lineno", 0)):
        first = getattr(node, "lineno", 1) - 1
        if isinstance(node, ast.Expr) and _calls(node.value).startswith("check_"):
            lines[first : node.end_lineno] = []
        elif isinstance(node, ast.With) and _calls(node.items[0].context_expr) == "known_ids":
            lines[first : node.end_lineno] = [
                line[4:] for line in lines[first + 1 : node.end_lineno]
            ]
    plain = "\n".join(lines)
    if plain == source or "raise " in plain:
        return plain
    return re.sub(r"(?m)^ +Errors: [^\n]+\n(?: +\S[^\n]*\n)*\n", "", plain)


def _calls(node: ast.AST) -> str:
    """The name of the function that an expression calls, or nothing."""
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return node.func.id if named else ""

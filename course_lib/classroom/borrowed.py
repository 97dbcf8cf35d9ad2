"""What a function needs from around it: imports, constants, and helpers of other cells."""

import ast
import builtins
import dis
import inspect
import math
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass, field

from course_lib.classroom.source import source_of


@dataclass
class Needs:
    """What a part borrows: import lines, code of helpers, and names that could not be had."""

    imports: list[str] = field(default_factory=list)
    helpers: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def needs_of(source: str, namespace: Mapping, known: set[str] = frozenset()) -> Needs:
    """Find what ``source`` uses and does not define, in the namespace that it was written in.

    ``known`` names need nothing: they are defined elsewhere in the same file.

    >>> import math
    >>> needs_of("def area(r): return math.pi * r * r", {"math": math}).imports
    ['import math']
    """
    needs, seen = Needs(), set(known)
    _collect(source, namespace, needs, seen)
    return needs


def global_names(source: str) -> set[str]:
    """The names that a piece of code reads from outside of itself.

    >>> sorted(global_names("def f(x): return g(x) + len(x)"))
    ['g']
    """
    defined, used = set(), set()

    def walk(code, top):
        for step in dis.get_instructions(code):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                used.add(step.argval)
            if top and step.opname in ("STORE_NAME", "STORE_GLOBAL"):
                defined.add(step.argval)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                walk(constant, top=False)

    walk(compile(source, "<part>", "exec", flags=0, dont_inherit=True), top=True)
    special = {"__name__", "__module__", "__qualname__", "__class__", "__annotations__"}
    return used - defined - set(dir(builtins)) - special - _bound_in_classes(source)


def _bound_in_classes(source: str) -> set[str]:
    """Names that a class's body binds for itself, such as its methods and attributes."""
    return {
        name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
        for item in node.body
        for name in _targets(item)
    }


def _targets(item) -> set[str]:
    if isinstance(item, (ast.FunctionDef, ast.ClassDef)):
        return {item.name}
    if isinstance(item, ast.Assign):
        return {target.id for target in item.targets if isinstance(target, ast.Name)}
    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
        return {item.target.id}
    return set()


def _collect(source: str, namespace: Mapping, needs: Needs, seen: set[str]) -> None:
    for name in sorted(global_names(source) - seen):
        seen.add(name)
        if name not in namespace:
            needs.missing.append(name)
            continue
        value = namespace[name]
        line = None if _is_own(value) else import_line(name, value)
        if line is not None:
            needs.imports.append(line)
        elif isinstance(value, (types.FunctionType, type)):
            _collect_definition(name, value, needs, seen)
        elif _is_constant(value):
            needs.helpers.append(f"{name} = {_literal(value)}")
        else:
            needs.missing.append(name)


def _is_constant(value) -> bool:
    """Whether Python can read the value back from what is written: no subclass, no tensor."""
    if type(value) in (tuple, frozenset):
        return all(map(_is_constant, value))
    return type(value) in (bool, int, float, str, bytes, type(None))


def _literal(value) -> str:
    """A constant as Python reads it back: repr() writes infinity and NaN as bare names.

    >>> _literal((1.5, -math.inf))
    "(1.5, float('-inf'))"
    """
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, frozenset):
        return f"frozenset({{{', '.join(map(_literal, value))}}})" if value else "frozenset()"
    return repr(value)


def _is_own(value) -> bool:
    """Whether the course wrote it: its source then goes into the learner's file."""
    return (getattr(value, "__module__", None) or "").split(".")[0] == "course_lib"


def import_line(name: str, value) -> str | None:
    """How to import a value under a name; None for what was written in the notebook.

    >>> import_line("root", math.sqrt)
    'from math import sqrt as root'
    """
    if isinstance(value, types.ModuleType):
        module = value.__name__
        parent, _, last = module.rpartition(".")
        if parent and last == name:
            return f"from {parent} import {name}"
        return f"import {module}" if module == name else f"import {module} as {name}"
    home = getattr(value, "__module__", None)
    original = getattr(value, "__name__", None)
    if home in (None, "__main__", "builtins"):
        return None
    if getattr(sys.modules.get(home), original or "", None) is not value:
        return None
    return f"from {home} import {original}" + ("" if original == name else f" as {name}")


def _defines(source: str, name: str) -> bool:
    """Whether the source is a definition of that name: a lambda's line is not one."""
    return any(getattr(node, "name", None) == name for node in ast.parse(source).body)


def _around(value) -> Mapping:
    """The namespace that a function or class was written in; an assembled one is in no module."""
    value = inspect.unwrap(value)  # a decorator's wrapper was written in another module
    own = getattr(value, "__globals__", None)
    if own is None:
        methods = (f for f in vars(value).values() if isinstance(f, types.FunctionType))
        own = next((f.__globals__ for f in methods), None)
    home = sys.modules.get(value.__module__)
    return own or (vars(home) if home else {})


def _collect_definition(name: str, value, needs: Needs, seen: set[str]) -> None:
    try:
        source = source_of(value)
        if not _defines(source, value.__name__):
            raise OSError(f"no definition of {value.__name__}")
    except (OSError, SyntaxError):
        needs.missing.append(name)
        return
    around = _around(value)
    own = value.__name__
    if own not in seen:
        seen.add(own)
        _collect(source, around, needs, seen)
        needs.helpers.append(source)
    elif own == name:
        _collect(source, around, needs, seen)
        needs.helpers.append(source)
    if own != name:
        # Not an assignment: the other part may stand further down in the file.
        needs.helpers.append(f"def {name}(*args, **kwargs):\n    return {own}(*args, **kwargs)")

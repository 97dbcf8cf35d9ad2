"""What a function needs from around it: imports, constants, and helpers of other cells."""

import ast
import builtins
import dis
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
        line = _import_line(name, value)
        if line is not None:
            needs.imports.append(line)
        elif isinstance(value, (types.FunctionType, type)):
            _collect_definition(name, value, needs, seen)
        elif isinstance(value, (bool, int, float, str, bytes, type(None), tuple, frozenset)):
            needs.helpers.append(f"{name} = {value!r}")
        else:
            needs.missing.append(name)


def _import_line(name: str, value) -> str | None:
    """How to import a value under a name; None for what the learner or the course wrote."""
    if isinstance(value, types.ModuleType):
        module = value.__name__
        return f"import {module}" if module == name else f"import {module} as {name}"
    home = getattr(value, "__module__", None)
    original = getattr(value, "__name__", None)
    if home in (None, "__main__", "builtins") or home.split(".")[0] == "course_lib":
        return None
    if getattr(sys.modules.get(home), original or "", None) is not value:
        return None
    return f"from {home} import {original}" + ("" if original == name else f" as {name}")


def _collect_definition(name: str, value, needs: Needs, seen: set[str]) -> None:
    try:
        source = source_of(value)
        ast.parse(source)
    except (OSError, SyntaxError):
        needs.missing.append(name)
        return
    home = sys.modules.get(value.__module__)
    around = getattr(value, "__globals__", None) or (vars(home) if home else {})
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

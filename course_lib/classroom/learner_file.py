"""The file that the learner writes, ``my_transformer.py``: one passed part after another.

It runs with torch alone. Parts stand between markers, in the course's order; a part that is
passed again replaces the earlier one, which goes to the history folder beside the file. What the
learner adds outside of the markers stays.
"""

import ast
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from traceback import extract_tb

from course_lib.classroom.borrowed import Needs, needs_of
from course_lib.classroom.lessons import PART_ORDER
from course_lib.classroom.sandbox_state import kept_state
from course_lib.classroom.storage import course_folder, explain_failure, locked
from course_lib.files import write_whole

FILE = "my_transformer.py"
HISTORY = ".my_transformer_history"
HEADER = '"""My Transformer: the parts that I built by hand, each one checked."""'
OWN = "# ==== my own lines ===="
SAVED = f"Saved in {FILE}."
_PART = re.compile(r"^# ==== part: (\w+) ====\n(.*?)^# ==== end of \1 ====\n?", re.M | re.S)
_MARKER = re.compile(r"^# ==== (?:part: |end of |imports)", re.M)
_IMPORTS = re.compile(r"^# ==== imports ====\n(.*?)^# ==== end of imports ====\n?", re.M | re.S)


def learner_file() -> Path:
    return course_folder() / FILE


def passed_parts() -> dict[str, str]:
    """The parts in the learner's file that can be read, by name, each with its source."""
    try:
        text = learner_file().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return {}
    return _readable(dict(_PART.findall(text)))


def save_part(name: str, source: str, namespace: Mapping | None = None) -> str:
    """Put a passed part into the learner's file and say in a sentence what happened.

    ``namespace`` is where the part was written: imports and helpers that it uses are saved with
    it. Never raises for a file that can't be written: the sentence then says so.
    """
    path = Path(FILE)
    try:
        path = learner_file()
        with locked(path):
            return _save(path, name, source.strip(), namespace or {})
    except OSError as error:
        return f"Your part counts, but {explain_failure(error, path)}"


def run_file() -> dict:
    """Run the learner's file in a namespace of its own, and return it. It changes no setting."""
    space = {"__name__": Path(FILE).stem}
    with kept_state([]):
        exec(compile(learner_file().read_text("utf-8-sig"), FILE, "exec"), space)
    return space


def _save(path: Path, name: str, source: str, namespace: Mapping) -> str:
    notes = []
    text = _text_of(path)
    whole = _parses(text) and not _MARKER.search(_outside(text))
    found = dict(_PART.findall(text))
    parts = _readable(found)
    if text and not (whole and parts.keys() == found.keys()):
        aside = _set_aside(path)
        what = "its markers do not pair up" if _parses(text) else "it is not Python"
        lost = sorted(found.keys() - parts.keys())
        if whole:
            what = f"what stands in the part {', '.join(lost)} does not define it at its margin"
        notes.append(
            f"{FILE} could not be read whole: {what}. It was kept as {aside.name}, and {FILE} "
            "written anew with the parts that could be read."
        )
    above, below = _own_lines(text) if whole else ("", "")
    needs = needs_of(source, namespace, known=set(parts) | {name})
    part = "\n\n\n".join([*needs.helpers, source])
    if name in parts and parts[name].strip() != part:
        _keep_version(path, name, parts[name])
    parts = {other: _without(text, name) for other, text in parts.items() if other != name}
    parts[name] = part
    imports = _sorted_imports([*_import_lines(text), *needs.imports])
    text = _compose(imports, parts, above, below)
    write_whole(path, text)
    return " ".join([*notes, _say_saved(name, path, needs), *_does_not_run()])


def _does_not_run() -> list[str]:
    """Try the file as an import would, and say where it stops."""
    try:
        run_file()
    except (Exception, SystemExit) as error:
        line = next(
            (f.lineno for f in reversed(extract_tb(error.__traceback__)) if f.filename == FILE), 0
        )
        return [
            f"{FILE} does not run by itself yet: line {line} raises {type(error).__name__}: "
            f"{error}. Nothing in it is lost; mend that line, or pass the part again."
        ]
    return []


def _say_saved(name: str, path: Path, needs: Needs) -> str:
    if not needs.missing:
        return SAVED
    names = ", ".join(f"`{missing}`" for missing in needs.missing)
    return (
        f"Saved in {path.name}, but the part uses {names} from outside of itself, which could not "
        "be saved with it. Move what it needs into the function."
    )


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        return path.read_text(encoding="utf-8", errors="replace") + "\n'"  # does not parse


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _readable(parts: dict[str, str]) -> dict[str, str]:
    """The parts that parse and define what they are named for."""
    return {
        name: source.strip()
        for name, source in parts.items()
        if _parses(source) and re.search(rf"^(?:def|class) {name}\b", source, re.M)
    }


def _outside(text: str) -> str:
    """The text without what stands between markers."""
    return _IMPORTS.sub("", _PART.sub("", text))


def _without(text: str, name: str) -> str:
    """A part without a helper of that name: the name now is a part of its own."""
    lines = text.splitlines()
    for node in reversed(ast.parse(text).body):
        if getattr(node, "name", None) == name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            del lines[first - 1 : node.end_lineno]
    return "\n".join(lines).strip()


def _own_lines(text: str) -> tuple[str, str]:
    """What the learner added outside of the markers: above the first part, and below it."""
    first = _PART.search(text)
    cut = first.start() if first else len(text)
    return tuple(
        _outside(half).replace(HEADER, "").replace(OWN, "").strip("\n")
        for half in (text[:cut], text[cut:])
    )


def _import_lines(text: str) -> list[str]:
    found = _IMPORTS.search(text)
    return [line for line in found.group(1).splitlines() if line.strip()] if found else []


def _sorted_imports(lines: list[str]) -> list[str]:
    return sorted({line for line in lines if _parses(line)}, key=lambda s: (s[:4] == "from", s))


def _compose(imports: list[str], parts: dict[str, str], above: str, below: str) -> str:
    order = {name: place for place, name in enumerate(PART_ORDER)}
    names = sorted(parts, key=lambda name: (order.get(name, len(order)), name))
    blocks = [HEADER]
    if above:  # may hold `from __future__ import ...`, which stands before all else
        blocks.append(f"{OWN}\n{above}")
    blocks.append("\n".join(["# ==== imports ====", *imports, "# ==== end of imports ===="]))
    blocks += [
        f"# ==== part: {name} ====\n{parts[name].strip()}\n# ==== end of {name} ====\n"
        for name in names
    ]
    if below:
        blocks.append(f"{OWN}\n{below}")
    return "\n\n".join(blocks).rstrip("\n") + "\n"


def _stamp() -> str:
    return datetime.now().strftime("%Y-%m-%d_%H%M%S_%f")


def _set_aside(path: Path) -> Path:
    aside = path.with_name(f"{path.stem}_unreadable_{_stamp()}.py")
    aside.write_bytes(path.read_bytes())
    return aside


def _keep_version(path: Path, name: str, source: str) -> None:
    history = path.with_name(HISTORY)
    history.mkdir(exist_ok=True)
    write_whole(history / f"{name}_{_stamp()}.py", source + "\n")

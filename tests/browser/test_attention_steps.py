import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from course_lib.visuals._widget import joined_module
from course_lib.visuals.attention_steps import STEPS, AttentionSteps

pytestmark = pytest.mark.browser

T, S, K, V = 3, 5, 7, 2
QUERIES, KEYS = ["ein", "und", "x"], ["a", "b", "c", "d", "e"]


@pytest.fixture
def qkv():
    numbers = torch.Generator().manual_seed(1)
    return [torch.randn(n, width, generator=numbers) for n, width in ((T, K), (S, K), (S, V))]


@pytest.fixture
def open_steps(browser, tmp_path):
    """Open widgets on one exported page, the network cut; collect what goes wrong on it."""
    contexts = []

    def open_(*widgets, width=800, scheme="light"):
        path = widgets[0].to_html(tmp_path / "steps.html")
        more = "".join(w._repr_mimebundle_()[0]["text/html"] for w in widgets[1:])
        path.write_text(path.read_text("utf-8").replace("</body>", more + "</body>"), "utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.wrong, page.asked = [], []
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("console", lambda m: m.type == "error" and page.wrong.append(m.text))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(path.as_uri())
        page.locator(".steps-grid").nth(len(widgets) - 1).wait_for()
        return page

    yield open_
    for context in contexts:
        for page in context.pages:
            assert page.wrong == []
            assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []
        context.close()


def go(page, step):
    page.locator(".steps-nav").first.get_by_role("button", name=f"{step + 1} ").click()


def table(page, shape=(T, S)):
    numbers = page.locator("td[data-at]").evaluate_all("cells => cells.map(c => c.dataset.value)")
    return np.array([float(x.replace("Infinity", "inf")) for x in numbers]).reshape(shape)


def cell(page, row, column):
    return page.locator(f"td[data-at='{row * S + column}']")


def outputs(page):
    """Read z at the last step: choose each query in turn."""
    rows = []
    for row in range(T):
        cell(page, row, 0).click()
        rows.append([float(x) for x in page.locator("tr.total").get_attribute("data-z").split(",")])
    return np.array(rows)


def press(page, label, key, times):
    slider = page.get_by_label(label)
    slider.focus()
    for _ in range(times):
        slider.press(key)


def run_what_the_page_says(page, qkv, mask):
    """Run each step's line of torch and hold its result against the table on the page."""
    q, k, v = qkv
    names = {"torch": torch, "math": math, "q": q, "k": k, "v": v, "mask": mask}
    for step, name in enumerate(STEPS):
        go(page, step)
        exec(page.locator(".steps-code b").inner_text(), names)
        shown = outputs(page) if name == "z" else table(page)
        np.testing.assert_allclose(shown, names[name], atol=1e-5, err_msg=name)
        sizes = ", ".join(map(str, names[name].shape))
        assert page.locator(".steps-code span").inner_text().endswith(f"= ({sizes})")
    return names


def test_every_step_equals_the_line_of_torch_beside_it(open_steps, qkv):
    page = open_steps(AttentionSteps(*qkv, QUERIES, KEYS))
    names = run_what_the_page_says(page, qkv, torch.ones(T, S, dtype=torch.bool))
    wanted = F.scaled_dot_product_attention(*qkv)
    np.testing.assert_allclose(names["z"], wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("preset", "mask"),
    [
        ("causal", torch.ones(T, S, dtype=torch.bool).tril(S - T)),
        ("padding", torch.arange(S).expand(T, S) < 4),
        ("none", torch.ones(T, S, dtype=torch.bool)),
    ],
)
def test_every_step_equals_torch_under_the_mask_presets(open_steps, qkv, preset, mask):
    page = open_steps(AttentionSteps(*qkv, QUERIES, KEYS))
    page.get_by_role("button", name=preset).click()
    assert page.get_by_role("button", name=preset).get_attribute("aria-pressed") == "true"
    run_what_the_page_says(page, qkv, mask)
    wanted = F.scaled_dot_product_attention(*qkv, attn_mask=mask)
    np.testing.assert_allclose(outputs(page), wanted, atol=1e-5)


@pytest.mark.parametrize(("key", "presses"), [("ArrowLeft", 13), ("ArrowRight", 11), ("End", 1)])
def test_the_temperature_slider_divides_the_scores(open_steps, qkv, key, presses):
    page = open_steps(AttentionSteps(*qkv, QUERIES, KEYS))
    press(page, "temperature", key, presses)
    shown = float(
        page.locator("label", has_text="temperature").locator(".steps-place").inner_text()
    )
    assert shown != 1
    run_what_the_page_says(page, qkv, torch.ones(T, S, dtype=torch.bool))
    go(page, 3)
    q, k, _ = qkv
    wanted = torch.softmax(q @ k.T / math.sqrt(K) / shown, dim=-1)
    np.testing.assert_allclose(table(page), wanted, atol=1e-5)


def test_the_slider_of_d_takes_the_first_features_and_says_so(open_steps, qkv):
    page = open_steps(AttentionSteps(*qkv, QUERIES, KEYS))
    press(page, "features d", "ArrowLeft", 4)
    assert page.get_by_text("d takes the first 3 of 7 features").is_visible()
    q, k, v = qkv
    wanted = F.scaled_dot_product_attention(q[:, :3], k[:, :3], v)
    names = run_what_the_page_says(page, qkv, torch.ones(T, S, dtype=torch.bool))
    np.testing.assert_allclose(names["z"], wanted, atol=1e-5)


def test_dragging_paints_the_mask_and_dead_rows_become_zero(open_steps, qkv):
    page = open_steps(AttentionSteps(*qkv, QUERIES, KEYS))
    go(page, 2)
    first, last = (cell(page, 1, column).bounding_box() for column in (0, S - 1))
    page.mouse.move(first["x"] + 9, first["y"] + 9)
    page.mouse.down()
    page.mouse.move(last["x"] + 9, last["y"] + 9, steps=25)
    page.mouse.up()
    page.mouse.move(first["x"] + 9, first["y"] - 9, steps=3)  # the brush is up: nothing happens
    cell(page, 2, 3).click()
    mask = torch.ones(T, S, dtype=torch.bool)
    mask[1], mask[2, 3] = False, False
    hatched = page.locator("td[data-at].abh-hatched")
    assert hatched.evaluate_all("cells => cells.map(c => +c.dataset.at)") == [5, 6, 7, 8, 9, 13]
    assert set(hatched.all_inner_texts()) == {"\N{MINUS SIGN}∞"}
    names = run_what_the_page_says(page, qkv, mask)
    assert not names["z"][1].any() and not names["weights"][1].any()


def test_a_second_stroke_takes_the_mask_away_again(open_steps, qkv):
    page = open_steps(AttentionSteps(*qkv, QUERIES, KEYS))
    go(page, 2)
    cell(page, 0, 4).click()
    assert np.argwhere(np.isinf(table(page))).tolist() == [[0, 4]]
    cell(page, 0, 4).click()
    assert np.isfinite(table(page)).all()


def test_space_paints_and_the_row_is_recomputed_on_the_spot(open_steps, qkv):
    page = open_steps(AttentionSteps(*qkv, QUERIES, KEYS))
    go(page, 3)
    before = table(page)
    cell(page, 0, 1).click()
    page.keyboard.press("Space")
    after = table(page)
    assert after[0, 1] == 0
    np.testing.assert_allclose(
        after[0, [0, 2, 3, 4]] / before[0, [0, 2, 3, 4]], 1 / (1 - before[0, 1])
    )
    np.testing.assert_array_equal(after[1:], before[1:])


def test_arrows_move_over_the_table_and_stop_at_its_edges(open_steps, qkv):
    page = open_steps(AttentionSteps(*qkv, QUERIES, KEYS))
    cell(page, 0, 0).click()
    places = []
    for key in (
        "ArrowUp",
        "ArrowDown",
        "ArrowRight",
        "End",
        "ArrowRight",
        "ArrowDown",
        "ArrowDown",
    ):
        page.keyboard.press(key)
        places.append(page.evaluate("document.activeElement.dataset.at"))
    assert places == ["0", "5", "6", "9", "9", "14", "14"]
    assert page.locator("td[tabindex='0']").count() == 1


def test_n_and_p_and_the_buttons_walk_the_steps(open_steps, qkv):
    page = open_steps(AttentionSteps(*qkv, QUERIES, KEYS))
    current = page.locator("[aria-current=step]")
    seen = []
    cell(page, 1, 1).click()
    for key in ("n", "n", "n", "n", "n", "p"):
        page.keyboard.press(key)
        seen.append(current.inner_text()[0])
    assert seen == ["2", "3", "4", "5", "5", "4"]
    page.get_by_role("button", name="Back").click()
    assert current.inner_text() == "3 mask"
    page.get_by_role("button", name="Next").click()
    assert current.inner_text() == "4 softmax"


def test_keys_stay_inside_but_tab_and_escape_pass(open_steps, qkv):
    page = open_steps(AttentionSteps(*qkv, QUERIES, KEYS))
    page.evaluate("window.heard = []; document.addEventListener('keydown', e => heard.push(e.key))")
    cell(page, 1, 1).click()
    for key in ("m", "ArrowDown", "n", "Space", "Enter", "Escape", "Shift+Enter", "Tab"):
        page.keyboard.press(key)
    assert page.evaluate("heard.filter(key => key !== 'Shift')") == ["Escape", "Enter", "Tab"]


def test_the_chosen_cell_is_written_out_in_numbers(open_steps):
    q, k, v = [[3, 0, 2, 0]], [[2, 5, 0, 1], [0, 0, 4, 0]], [[4, 1], [0, 8]]
    page = open_steps(AttentionSteps(q, k, v, ["sat"], ["cat", "mat"]))
    right = page.locator(".steps-right")
    page.locator("td[data-at='1']").click()
    assert right.locator("p").last.inner_text() == "0 + 0 + 8 + 0 = 8"
    go(page, 1)
    assert right.locator("p").last.inner_text() == "8 ÷ √4 = 8 ÷ 2 = 4"
    go(page, 3)
    assert right.locator("p").last.inner_text() == "54.60 ÷ 74.68 = 0.73"
    go(page, 4)
    assert right.locator("tr.on td").all_inner_texts() == ["0.73", "[0, 8]", "[0, 5.85]"]
    assert right.locator("tr.total td").last.inner_text() == "[1.08, 6.12]"


def test_large_scores_are_written_with_the_largest_taken_off(open_steps):
    page = open_steps(
        AttentionSteps([[64.0]], [[10.0], [10 + 1 / 64]], [[1], [2]], ["a"], ["b", "c"])
    )
    go(page, 3)
    right = page.locator(".steps-right")
    assert right.locator("th").nth(2).inner_text() == "e^(score \N{MINUS SIGN} 641)"
    assert right.locator("tr").nth(1).locator("td").all_inner_texts() == ["640", "0.37", "0.27"]


def test_of_many_features_the_first_are_shown_and_the_rest_counted(open_steps):
    x = np.ones((2, 64))
    page = open_steps(AttentionSteps(x, x, x, ["a", "b"]))
    assert "(59 more) = 64" in page.locator(".steps-right p").last.inner_text()
    go(page, 4)
    assert page.locator("tr.total td").last.inner_text() == "[1, 1, 1, 1, 1, …]"


def test_reset_returns_to_the_mask_the_temperature_and_the_d_of_the_start(open_steps, qkv):
    mask = torch.ones(T, S, dtype=torch.bool).tril()
    page = open_steps(AttentionSteps(*qkv, QUERIES, KEYS, mask=mask))
    go(page, 3)
    before = table(page)
    page.get_by_role("button", name="padding").click()
    press(page, "temperature", "ArrowLeft", 3)
    press(page, "features d", "Home", 1)
    assert np.abs(table(page) - before).max() > 0.01
    page.get_by_role("button", name="Reset").click()
    np.testing.assert_array_equal(table(page), before)


def test_two_on_one_page_do_not_disturb_each_other(open_steps, qkv):
    first, second = (AttentionSteps(*qkv, QUERIES, KEYS) for _ in range(2))
    page = open_steps(first, second)
    grids = page.locator(".steps")
    grids.nth(1).get_by_role("button", name="4 softmax").click()
    grids.nth(1).get_by_role("button", name="causal").click()
    current = page.locator("[aria-current=step]").all_inner_texts()
    assert current == ["1 q · k", "4 softmax"]
    assert grids.nth(0).locator("td.abh-hatched").count() == 0
    assert grids.nth(1).locator("td[data-at].abh-hatched").count() == 3


def test_a_screen_reader_hears_the_cell_and_the_table_has_its_roles(open_steps, qkv):
    page = open_steps(AttentionSteps(*qkv, QUERIES, KEYS))
    go(page, 3)
    cell(page, 2, 4).click()
    weight = table(page)[2, 4]
    said = f"query x, key e: {weight:.2f}"
    assert page.get_by_role("status").inner_text() == said
    assert cell(page, 2, 4).get_attribute("aria-label") == said
    page.keyboard.press("Space")
    assert page.get_by_role("status").inner_text() == "query x, key e: 0.00, masked"
    assert page.get_by_role("grid", name="weights: 3 queries by 5 keys").count() == 1
    assert page.get_by_role("gridcell", selected=True).count() == 1


@pytest.mark.parametrize("theme", ["system", "jupyterlab", "colab"])
def test_dark_themes_give_dark_ground_and_light_ink(open_steps, qkv, theme):
    page = open_steps(
        AttentionSteps(*qkv, QUERIES, KEYS), scheme="dark" if theme == "system" else "light"
    )
    if theme == "jupyterlab":
        page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    if theme == "colab":
        page.evaluate("document.documentElement.setAttribute('theme', 'dark')")
    style = "getComputedStyle(document.querySelector('.steps'))"
    ground, ink = (
        np.mean([int(x) for x in page.evaluate(f"{style}.{name}.match(/\\d+/g)")[:3]])
        for name in ("backgroundColor", "color")
    )
    assert ground < 60 and ink > 200


def test_tokens_are_text_and_never_html(open_steps, qkv):
    token = "<img src=x onerror=alert(1)>"
    page = open_steps(AttentionSteps(*qkv, [token, "</script>", "$x$"], KEYS))
    assert page.locator(".steps-grid th bdi").filter(has_text=token).count() == 1
    assert page.locator(".steps img").count() == 0


@pytest.mark.parametrize("n", [6, 24])
def test_every_step_fits_800_pixels(open_steps, n):
    x = torch.randn(n, 13, generator=torch.Generator().manual_seed(0))
    page = open_steps(AttentionSteps(x, x, x, [f"word{i}" for i in range(n)]))
    for step in range(len(STEPS)):
        go(page, step)
        assert page.evaluate("document.documentElement.scrollWidth") <= 800


def test_what_python_sets_is_drawn_and_an_end_leaves_nothing_behind(browser, qkv):
    steps = AttentionSteps(*qkv, QUERIES, KEYS)
    page = browser.new_page()
    page.set_content("<body></body>")
    module = joined_module("attention_steps.mjs").replace("export default", "window.widget =")
    numbers = list(steps.numbers)
    page.add_script_tag(type="module", content=module)
    page.wait_for_function("window.widget")
    page.evaluate(
        """([state, numbers]) => {
          const heard = {};
          window.heard = heard;
          window.sent = [];
          const model = {
            get: (name) => state[name],
            set: (name, value) => { state[name] = value; fire(name); },
            on: (event, call) => (heard[event] ??= new Set()).add(call),
            off: (event, call) => heard[event].delete(call),
            save_changes: () => sent.push({ ...state, numbers: null }),
          };
          const fire = (name) => heard[`change:${name}`]?.forEach((call) => call());
          state.numbers = new DataView(new Uint8Array([0, ...numbers]).buffer, 1);
          window.python = (name, value) => { state[name] = value; fire(name); };
          window.end = widget.render({ model, el: document.body });
        }""",
        [{k: v for k, v in steps.page_state().items() if k != "numbers"}, numbers],
    )
    for name, value in {"step": 3, "temperature": 0.37, "d": 4, "row": 2}.items():
        page.evaluate("([name, value]) => python(name, value)", [name, value])
    q, k, _ = qkv
    wanted = torch.softmax(q[:, :4] @ k[:, :4].T / 2 / 0.37, dim=-1)
    np.testing.assert_allclose(table(page), wanted, atol=1e-5)
    assert page.locator(".steps-place").all_inner_texts() == ["0.37", "4 of 7"]

    cell(page, 1, 3).click()
    page.keyboard.press("Space")
    sent = page.evaluate("sent.at(-1)")
    assert (sent["row"], sent["column"], sent["allowed"].index("0")) == (1, 3, 8)

    page.evaluate("end()")
    assert page.locator(".steps").count() == 0
    assert page.evaluate("Object.values(heard).map((calls) => calls.size)") == [0] * 6
    page.close()

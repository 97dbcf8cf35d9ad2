"""AttentionView in a real browser: pointer, keys, parity with numpy, themes, no requests."""

import numpy as np
import pytest
import torch

from course_lib.visuals.attention_view import AttentionView

pytestmark = pytest.mark.browser

L, H, T, S = 2, 3, 5, 7
WORDS = ["ein", "<b>und</b>", "", "שלום", "🙂🙂"]
KEYS = [f"k{s}" for s in range(S)]


def tables(seed=0):
    scores = torch.randn(L, H, T, S, generator=torch.Generator().manual_seed(seed))
    mask = torch.ones(T, S, dtype=torch.bool)
    mask[1, 2:] = False
    return scores.masked_fill(~mask, -torch.inf).softmax(-1).numpy(), mask.numpy()


@pytest.fixture
def open_views(browser, tmp_path):
    """Open widgets on one exported page with the network cut; any error or request fails."""
    opened = []

    def open_(*views, scheme="light", width=800):
        path = views[0].to_html(tmp_path / "view.html")
        more = "".join(v._repr_mimebundle_()[0]["text/html"] for v in views[1:])
        path.write_text(path.read_text("utf-8").replace("</body>", more + "</body>"), "utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        page = context.new_page()
        page.wrong, page.asked = [], []
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("console", lambda m: m.type == "error" and page.wrong.append(m.text))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(path.as_uri())
        page.locator(".view-grid").nth(len(views) - 1).wait_for()
        opened.append((context, page))
        return page

    yield open_
    for context, page in opened:
        assert page.wrong == []
        assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []
        context.close()


def view(**more):
    weights, mask = tables()
    return AttentionView(weights, WORDS, KEYS, mask=mask, **more)


def said(page, nth=0):
    return page.locator(".view-said").nth(nth).inner_text()


def place(page, row, column):
    cell = page.locator(".view-grid canvas").first.bounding_box()["width"] / S
    return {"x": (column + 0.5) * cell, "y": (row + 0.5) * cell}


def test_hovering_a_cell_says_query_key_and_number(open_views):
    page, weights = open_views(view(layer=1, head=2)), tables()[0]
    for row, column in ((0, 0), (3, 4), (4, 6)):
        page.locator(".view-grid").hover(position=place(page, row, column))
        assert said(page).endswith(f"k{column} {weights[1, 2, row, column]:.2f}")
    page.locator(".view-grid").hover(position=place(page, 1, 5))
    assert said(page).endswith("k5 0.00, masked")


def test_a_click_stays_and_arrow_keys_move_from_it(open_views):
    page, weights = open_views(view()), tables()[0]
    page.locator(".view-grid").click(position=place(page, 3, 3))
    page.mouse.move(5, 5)
    assert said(page).endswith(f"k3 {weights[0, 0, 3, 3]:.2f}")
    for key, row, column in (("ArrowRight", 3, 4), ("ArrowUp", 2, 4), ("End", 2, 6),
                             ("ArrowRight", 2, 6), ("Home", 2, 0)):  # fmt: skip
        page.keyboard.press(key)
        assert said(page).endswith(f"k{column} {weights[0, 0, row, column]:.2f}")
    cell = page.locator("[role=gridcell]")
    assert cell.get_attribute("aria-colindex") == "1"
    assert cell.text_content() == said(page)


def test_the_keyboard_alone_reaches_everything(open_views):
    page, weights = open_views(view()), tables()[0]
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert page.locator("select").nth(0).input_value() == "1"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator(".view-table tr").count() == T + 1
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert said(page).endswith(f"k1 {weights[1, 1, 0, 1]:.2f}")


def test_choosers_and_thumbnails_show_the_same_head(open_views):
    page, weights = open_views(view()), tables()[0]
    page.locator("select").nth(0).select_option("1")
    page.locator("select").nth(1).select_option("2")
    page.locator(".view-grid").hover(position=place(page, 4, 1))
    assert said(page).endswith(f"{weights[1, 2, 4, 1]:.2f}")
    page.get_by_role("button", name="layer 0, head 1").click()
    assert page.locator("select").nth(1).input_value() == "1"
    assert page.locator(".view-thumbs [aria-pressed=true]").count() == 1
    page.locator(".view-grid").hover(position=place(page, 4, 1))
    assert said(page).endswith(f"{weights[0, 1, 4, 1]:.2f}")


def test_the_table_holds_numpys_numbers(open_views):
    page, (weights, mask) = open_views(view(layer=1)), tables()
    page.get_by_role("button", name="Show the numbers").click()
    cells = page.locator(".view-table td").all_inner_texts()
    shown = np.array([float(text.split(",")[0]) for text in cells]).reshape(T, S)
    np.testing.assert_allclose(shown, weights[1, 0], atol=0.00501)
    assert [", masked" in text for text in cells] == (~mask).ravel().tolist()


def test_a_word_shows_its_whole_row_or_column(open_views):
    page, weights = open_views(view()), tables()[0]
    page.locator(".view-queries > span").nth(4).click()
    assert said(page) == "query 🙂🙂 looks at"
    best = np.sort(weights[0, 0, 4])[::-1][:5]
    shown = page.locator(".view-top li span").all_inner_texts()
    assert shown == [f"{x:.2f}" for x in best]
    page.locator(".view-keys > span").nth(2).click()
    assert said(page) == "key k2 is seen by"


def test_colours_are_viridis_on_one_scale(open_views):
    import matplotlib

    page, weights = open_views(view()), tables()[0]
    for row, column in ((0, 0), (4, 6)):
        spot = place(page, row, column)
        colour = page.evaluate(
            "([x, y]) => [...document.querySelector('.view-grid canvas').getContext('2d')"
            ".getImageData(x, y, 1, 1).data]",
            [spot["x"] - 15, spot["y"] - 15],
        )
        expected = matplotlib.colormaps["viridis"](weights[0, 0, row, column], bytes=True)
        assert np.abs(np.array(colour[:3]) - np.array(expected[:3])).max() <= 4


def test_two_on_one_page_do_not_meet(open_views):
    page = open_views(view(), view(layer=1, head=1))
    page.locator("select").nth(1).select_option("2")
    assert page.locator("select").nth(3).input_value() == "1"
    ids = page.locator("[id]").evaluate_all("nodes => nodes.map((node) => node.id)")
    assert len(ids) == len(set(ids))


def test_tokens_are_text_and_never_html(open_views):
    page = open_views(view())
    labels = page.locator(".view-queries > span").all_inner_texts()
    assert labels[1] == "<b>und</b>" and labels[2] == "(empty)"
    assert page.locator(".view-queries b").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read_in_both_themes(open_views, scheme):
    words = [f"word{i}" for i in range(40)]
    scores = torch.randn(6, 12, 40, 40, generator=torch.Generator().manual_seed(1))
    page = open_views(AttentionView(scores.softmax(-1), words), scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 800
    ratios = page.locator(".view .view-said, .view label, .view .abh-note").evaluate_all(
        """nodes => nodes.map((node) => {
          const rgb = (text) => text.match(/[0-9.]+/g).map(Number);
          const light = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.04045
            ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
            .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
          const ground = light(rgb(getComputedStyle(node.closest('.abh')).backgroundColor));
          const ink = light(rgb(getComputedStyle(node).color));
          return (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05);
        })"""
    )
    assert min(ratios) >= 4.5


def test_a_large_exported_model_holds_one_layer_and_says_so(open_views):
    scores = torch.randn(24, 12, 64, 64, generator=torch.Generator().manual_seed(2))
    page = open_views(AttentionView(scores.softmax(-1), [str(i) for i in range(64)], layer=3))
    assert page.locator("select").nth(0).is_disabled()
    assert "One of 24 layers" in page.locator(".abh-note").first.inner_text()

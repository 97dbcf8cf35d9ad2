import unicodedata

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from course_lib.visuals import labels
from course_lib.visuals.figures import png
from course_lib.visuals.plots import attention_heatmap, convex_hull, hull_plot, power_law_plot


@pytest.fixture
def weights():
    return torch.softmax(torch.randn(3, 5, generator=torch.Generator().manual_seed(1)), dim=-1)


def hatched_cells(ax):
    (collection,) = (c for c in ax.collections if isinstance(c, PathCollection))
    assert collection.get_hatch()
    (path,) = collection.get_paths()
    cells = set()
    for outline in path.vertices.reshape(-1, 5, 2):
        (left, top), (right, bottom) = outline.min(0), outline.max(0)
        assert bottom - top == 1
        cells |= {
            (round(top + 0.5), column) for column in range(round(left + 0.5), round(right + 0.5))
        }
    return cells


def tick_words(ax):
    named = (ax.get_yticklabels(), ax.get_xticklabels())
    return tuple([label.get_text() for label in words] for words in named)


def test_weights_stand_in_the_image_row_by_row_on_one_fixed_scale(weights):
    ax = attention_heatmap(weights)
    (image,) = ax.images
    np.testing.assert_allclose(image.get_array(), weights, atol=1e-7)
    assert image.get_clim() == (0, 1)
    assert image.get_cmap().name == "viridis"


def test_the_picture_has_a_border_and_a_colorbar(weights):
    ax = attention_heatmap(weights)
    assert all(spine.get_visible() for spine in ax.spines.values())
    assert [other.get_ylabel() for other in ax.figure.axes if other is not ax] == ["weight"]


def test_scores_are_centred_at_zero_whatever_their_sign():
    ax = attention_heatmap([[1.0, -7.0], [2.0, 3.0]], kind="scores")
    assert ax.images[0].get_clim() == (-7, 7)
    assert ax.images[0].get_cmap().name == "PuOr"


def test_masked_cells_are_hatched_and_carry_no_number(weights):
    mask = torch.ones(3, 5, dtype=torch.bool).tril()
    ax = attention_heatmap(weights * mask, mask=mask)
    assert hatched_cells(ax) == {(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)} | {
        (2, 3),
        (2, 4),
    }
    assert len(ax.texts) == int(mask.sum())


def test_a_masked_cell_that_holds_a_weight_shows_it_under_the_hatching(weights):
    ax = attention_heatmap(weights, mask=np.arange(5) < 4)
    assert hatched_cells(ax) == {(0, 4), (1, 4), (2, 4)}
    assert not np.ma.getmaskarray(ax.images[0].get_array()).any()


def test_a_score_of_minus_infinity_is_hatched_without_a_mask():
    ax = attention_heatmap([[1.0, -np.inf], [2.0, 0.0]], kind="scores")
    assert hatched_cells(ax) == {(0, 1)}


def test_a_table_of_masked_scores_alone_can_be_drawn():
    ax = attention_heatmap(np.full((2, 3), -np.inf), kind="scores")
    assert len(hatched_cells(ax)) == 6
    png(ax.figure)


def test_numbers_are_written_to_two_digits_in_ink_that_contrasts():
    ax = attention_heatmap([[0.125, 0.875]])
    assert {text.get_text(): text.get_color() for text in ax.texts} == {
        "0.12": "white",
        "0.88": "black",
    }


def test_large_tables_carry_no_numbers_unless_asked():
    table = np.full((13, 13), 1 / 13)
    assert not attention_heatmap(table).texts
    assert len(attention_heatmap(table, annotate=True).texts) == 169
    assert not attention_heatmap(table[:2, :2], annotate=False).texts


def test_keys_take_the_words_of_the_queries_only_where_there_is_one_each(weights):
    assert tick_words(attention_heatmap(torch.eye(2), ["a", "b"])) == (["a", "b"], ["a", "b"])
    numbers = ["0", "1", "2", "3", "4"]
    assert tick_words(attention_heatmap(weights, ["a", "b", "c"])) == (["a", "b", "c"], numbers)


def test_cross_attention_names_queries_and_keys_apart(weights):
    named = tick_words(attention_heatmap(weights, ["ein", "und", "x"], list("abcde")))
    assert named == (["ein", "und", "x"], list("abcde"))


def test_the_given_axes_are_drawn_on_and_returned(weights):
    left, right = Figure().subplots(1, 2)
    assert attention_heatmap(weights, ax=right) is right
    assert right.images and not left.images


@pytest.mark.parametrize("token", ["$x$", "$", "\\frac{", "a_b^c", "<b>", "日本", "😀", "a\nb", ""])
def test_any_token_is_drawn_as_text_without_a_warning(token):
    ax = attention_heatmap(torch.eye(2), [token, "b"], title=f"{token}.")
    png(ax.figure, dpi=40)
    assert not any(label.get_parse_math() for label in (*ax.get_xticklabels(), ax.title))


def test_dollars_are_drawn_as_dollars():
    (label, _) = attention_heatmap(torch.eye(2), ["$x$", "b"]).get_xticklabels()
    assert label.get_text() == "$x$"


def test_a_character_in_no_font_becomes_its_code_point(monkeypatch):
    monkeypatch.setattr(labels, "_family_with", lambda code: None if code == 0x65E5 else "")
    assert labels.drawable("a日")[0] == "aU+65E5"


def test_a_font_is_found_for_a_character_that_the_default_one_lacks():
    default = labels._characters(matplotlib.font_manager.findfont("DejaVu Sans"))
    held = {
        code: entry
        for entry in matplotlib.font_manager.fontManager.ttflist
        if entry.name == "STIXGeneral" and entry.style == "normal" and entry.weight == 400
        for code in labels._characters(entry.fname) - default
        if chr(code).isprintable() and unicodedata.category(chr(code)) != "Co"
    }
    code = min(held)
    text, families = labels.drawable(chr(code))
    assert text == chr(code)
    assert len(families) == 2


def test_a_blank_token_is_seen():
    assert labels.drawable("  ")[0] == "␣␣"
    assert labels.drawable("")[0] == "(empty)"


def test_a_long_token_is_cut_with_a_mark():
    assert labels.drawable("antidisestablishmentarianism")[0] == "antidisestablis…"


def test_of_many_tokens_some_are_named_and_the_axis_says_so():
    ax = attention_heatmap(np.full((2, 97), 1 / 97))
    assert [label.get_text() for label in ax.get_xticklabels()][:3] == ["0", "3", "6"]
    assert ax.get_xlabel() == "key (1 in 3 named)"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tokens": ["a", "b"]}, "2 tokens for 3 rows"),
        ({"key_tokens": ["a"]}, "1 key_tokens for 5 columns"),
        ({"mask": np.ones((2, 5), dtype=bool)}, r"mask \(2, 5\) does not fit the table's \(3, 5\)"),
        ({"kind": "logits"}, "kind is 'logits'"),
        ({"weights": torch.ones(2, 3, 5)}, r"\(2, 3, 5\).*one \(queries, keys\) table"),
        ({"weights": [[0.5, 1.7]]}, "row 0, column 1 holds 1.7.*kind='scores'"),
        ({"weights": [[0.5], [np.nan]]}, "row 1, column 0 holds nan"),
    ],
)
def test_what_does_not_fit_is_named_with_its_numbers(weights, wrong, message):
    with pytest.raises(ValueError, match=message):
        attention_heatmap(**{"weights": weights} | wrong)


def test_a_mask_of_numbers_is_refused(weights):
    with pytest.raises(TypeError, match="True where a query may look"):
        attention_heatmap(weights, mask=torch.ones(3, 5))


def test_half_precision_and_gradients_are_drawn():
    table = torch.softmax(torch.zeros(2, 3, dtype=torch.bfloat16, requires_grad=True), dim=-1)
    assert attention_heatmap(table).images


def test_the_fitted_exponent_stands_in_the_legend():
    sizes = np.array([3, 7, 11])
    measured = {"square": (sizes, 5 * sizes**2), "line": (sizes, 2 * sizes)}
    ax = power_law_plot(measured, xlabel="n", ylabel="seconds")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "square: n^2.0",
        "line: n^1.0",
    ]
    assert ax.get_xscale() == ax.get_yscale() == "log"
    np.testing.assert_allclose(ax.lines[1].get_ydata(), 5 * sizes**2)


def test_a_measurement_of_zero_has_no_logarithm():
    with pytest.raises(ValueError, match="all above 0"):
        power_law_plot({"a": ([1, 2], [0, 3])}, xlabel="n", ylabel="s")


def test_the_hull_holds_its_corners_and_no_inner_point():
    points = np.array([[0, 0], [4, 1], [2, 2], [0, 3], [0, 0], [1, 4], [2, 1]])
    corners = convex_hull(points)
    assert corners.tolist() == [[0, 0], [4, 1], [1, 4], [0, 3]]


@pytest.mark.parametrize("points", [[[1, 2]], [[1, 2], [1, 2]], [[0, 0], [1, 1], [2, 2]]])
def test_the_hull_of_one_point_or_of_a_line_is_drawn(points):
    values = np.array(points, dtype=float)
    png(hull_plot(values, values.mean(axis=0, keepdims=True)).figure, dpi=40)
    corners = {tuple(corner) for corner in convex_hull(values).tolist()}
    assert corners == {tuple(values[0]), tuple(values[-1])}


def test_equal_values_share_a_label():
    ax = hull_plot([[0, 0], [2, 1], [0, 0]], [[1, 0.5]], ["the", "cat", "a"])
    assert [note.get_text() for note in ax.texts] == ["the a", "cat"]


def test_values_off_the_plane_are_refused():
    with pytest.raises(ValueError, match=r"values \(2, 3\)"):
        hull_plot(np.ones((2, 3)), np.ones((1, 2)))


def test_a_title_is_not_cut_like_a_token():
    title = "A sentence, read by the second head of the first layer"
    assert attention_heatmap([[1.0]], ["a"], title=title).get_title() == title

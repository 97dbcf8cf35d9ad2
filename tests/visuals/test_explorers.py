import base64

import ipywidgets as widgets
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from course_lib.visuals.explorers import Explorer, scale_explorer, softmax_health

NUMBERS = np.random.default_rng(0)


@pytest.fixture(scope="module")
def lesson_explorer():
    return scale_explorer()


@pytest.fixture
def small():
    """An explorer of one point on one axis."""
    figure = Figure(figsize=(2, 2))
    (point,) = figure.subplots(subplot_kw={"xlim": (0, 11), "ylim": (0, 11)}).plot([0], [0], "o")

    def update(x):
        if x == 7:
            raise ValueError("<b>seven</b> is not shown")
        point.set_data([x], [x])
        return f"The point is at {x}."

    explorer = Explorer(
        figure, {"x": widgets.IntSlider(2, 0, 11, description="x")}, update, alt="A"
    )
    explorer.point = point
    return explorer


def the(kind, explorer):
    return next(child for child in explorer.children if isinstance(child, kind))


def test_the_numbers_equal_torchs_at_any_width():
    q, k = NUMBERS.standard_normal((5, 13)), NUMBERS.standard_normal((5, 3, 13))
    health = softmax_health(q, k)
    for width in (1, 2, 13):
        scores = torch.einsum("nd,nsd->ns", *(torch.tensor(x[..., :width]) for x in (q, k)))
        for kind, divisor in enumerate((1, width**0.5)):
            weights = torch.softmax(scores / divisor, dim=-1)
            entropy = torch.distributions.Categorical(probs=weights).entropy().mean()
            moved = (
                torch.autograd.functional.jacobian(
                    lambda x: torch.softmax(x, dim=-1), scores / divisor
                )
                .diagonal(0, 0, 2)
                .diagonal(0, 0, 1)
            )  # how each weight moves with its own score
            here = [part[kind, width - 1] for part in health]
            np.testing.assert_allclose(here[0], (scores / divisor).std(correction=0))
            np.testing.assert_allclose(here[1], entropy)
            np.testing.assert_allclose(here[2], moved.sum() / 5)
            ranked = weights.sort(dim=-1, descending=True).values.mean(dim=0)
            np.testing.assert_allclose(here[3], ranked)


def test_extreme_scores_stay_finite():
    health = softmax_health(np.full((1, 2), 1e4), np.array([[[1e4, 0], [-1e4, 0]]]))
    assert all(np.isfinite(part).all() for part in health)
    assert health.entropy[0, 0] == 0


@pytest.mark.parametrize("shape", [(5, 3, 11), (7, 3, 13), (5, 13)])
def test_queries_and_keys_that_do_not_fit_are_named(shape):
    with pytest.raises(ValueError, match=r"q \(5, 13\) and k \(.*\) do not fit"):
        softmax_health(np.ones((5, 13)), np.ones(shape))


def test_a_slider_moves_the_drawing_the_picture_and_the_words(small):
    before = bytes(the(widgets.Image, small).value)
    small.controls["x"].value = 5
    assert small.point.get_xdata() == [5]
    assert the(widgets.Image, small).value != before
    assert small.sentence == "The point is at 5."
    assert (
        the(widgets.HTML, small).value
        == '<p role="status" aria-live="polite">The point is at 5.</p>'
    )


def test_the_picture_keeps_its_size_while_the_slider_moves(small):
    sizes = set()
    for x in (0, 5, 11):
        small.controls["x"].value = x
        sizes.add(bytes(the(widgets.Image, small).value[16:24]))
    assert len(sizes) == 1


def test_an_error_is_shown_on_the_page_and_raised(small):
    with pytest.raises(ValueError, match="seven"):
        small.controls["x"].value = 7
    shown = the(widgets.HTML, small).value
    assert "ValueError: &lt;b&gt;seven&lt;/b&gt; is not shown" in shown
    assert 'role="alert"' in shown


def test_after_an_error_the_next_value_is_shown_again(small):
    with pytest.raises(ValueError):
        small.controls["x"].value = 7
    small.controls["x"].value = 3
    assert the(widgets.HTML, small).value.count("The point is at 3.") == 1


def test_a_control_without_a_label_is_refused():
    with pytest.raises(ValueError, match="'x' has no description"):
        Explorer(Figure(), {"x": widgets.IntSlider()}, lambda x: "", alt="A")


def test_without_widgets_the_first_picture_and_its_sentence_remain(small):
    small.controls["x"].value = 11
    shown = small._repr_mimebundle_()
    assert shown["application/vnd.jupyter.widget-view+json"]["model_id"] == small.model_id
    assert 'alt="A"' in shown["text/html"]
    assert shown["text/plain"] == "The point is at 2."
    assert base64.b64decode(shown["image/png"]).startswith(b"\x89PNG")


def test_every_width_of_the_lesson_can_be_drawn(lesson_explorer):
    slider = lesson_explorer.controls["width"]
    assert (slider.min, slider.max) == (1, 256)
    for width in (1, 2, 64, 255, 256):
        slider.value = width
        assert f"At d_k = {width}," in lesson_explorer.sentence


def test_the_marks_and_bars_show_the_numbers_of_the_width(lesson_explorer):
    numbers = np.random.default_rng(0)
    q, k = numbers.standard_normal((500, 256)), numbers.standard_normal((500, 16, 256))
    health = softmax_health(q, k)
    lesson_explorer.controls["width"].value = 100
    bars, *panels = lesson_explorer.figure.axes
    heights = [[bar.get_height() for bar in column] for column in bars.containers]
    np.testing.assert_allclose(heights, health.ranked[:, 99])
    for ax, curves in zip(panels, health[:3], strict=True):
        marks = [line for line in ax.lines if len(line.get_xdata()) == 1]
        assert [mark.get_xdata()[0] for mark in marks] == [100, 100]
        np.testing.assert_allclose([mark.get_ydata()[0] for mark in marks], curves[:, 99])


def test_the_division_keeps_the_spread_the_entropy_and_the_gradient(lesson_explorer):
    lesson_explorer.controls["width"].value = 256
    spread, entropy, gradient = (
        [line.get_ydata()[0] for line in ax.lines if len(line.get_xdata()) == 1]
        for ax in lesson_explorer.figure.axes[1:]
    )
    assert spread[0] > 15 and abs(spread[1] - 1) < 0.05
    assert entropy[0] < 0.3 and entropy[1] > 2
    assert gradient[0] < 0.2 and gradient[1] > 0.8

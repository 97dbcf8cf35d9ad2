import base64
import re
from html.parser import HTMLParser

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from matplotlib.figure import Figure

from course_lib.visuals.figures import figure_bundle, show_figure

ALT = 'A line & a <b>"dot"</b>'


@pytest.fixture
def figure():
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([1, 2])
    return figure


class Tags(HTMLParser):
    def __init__(self, source):
        super().__init__()
        self.found, self.text = {}, ""
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.found[tag] = dict(attrs)

    def handle_data(self, data):
        self.text += data


def test_the_image_carries_the_alt_text_and_nothing_typed_becomes_html(figure):
    tags = Tags(figure_bundle(figure, ALT, "Up <i>and</i> up.")["text/html"])
    assert tags.found["img"]["alt"] == ALT
    assert tags.text == "Up <i>and</i> up."
    assert set(tags.found) == {"figure", "img", "figcaption"}


def test_the_image_is_a_png_inside_the_page(figure):
    source = Tags(figure_bundle(figure, ALT)["text/html"]).found["img"]["src"]
    head, body = source.split(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(body).startswith(b"\x89PNG")


def test_plain_text_is_the_summary_else_the_alt_text(figure):
    assert figure_bundle(figure, ALT, "Up.")["text/plain"] == "Up."
    assert figure_bundle(figure, ALT)["text/plain"] == ALT
    assert "figcaption" not in figure_bundle(figure, ALT)["text/html"]


def test_the_picture_is_shown_at_about_the_size_it_was_made_for(figure):
    width = re.search(r'width="(\d+)"', figure_bundle(figure, ALT)["text/html"])
    assert 220 < int(width[1]) <= 3 * 96 + 20


def test_an_empty_alt_text_is_refused(figure):
    with pytest.raises(ValueError, match="alt is empty"):
        figure_bundle(figure, "  ")


def test_axes_are_refused_with_the_remedy(figure):
    with pytest.raises(TypeError, match=r"axes\.figure"):
        figure_bundle(figure.axes[0], ALT)


def test_showing_displays_one_bundle(figure):
    InteractiveShell.instance()
    try:
        with capture_output() as captured:
            show_figure(figure, ALT, "Up.")
    finally:
        InteractiveShell.clear_instance()
    (shown,) = captured.outputs
    assert shown.data["text/plain"] == "Up."
    assert "<figcaption" in shown.data["text/html"]


def test_a_figure_of_pyplot_is_closed_and_others_stay_open():
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    shown, other = pyplot.figure(), pyplot.figure()
    show_figure(shown, ALT)
    try:
        assert pyplot.get_fignums() == [other.number]
    finally:
        pyplot.close("all")

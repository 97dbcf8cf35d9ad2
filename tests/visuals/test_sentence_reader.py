"""The reader: a text goes in, its attention comes out, and nothing typed becomes HTML."""

from types import SimpleNamespace

import numpy as np
import pytest

from course_lib.visuals.sentence_reader import SentenceReader


def read(text):
    if text == "fail":
        raise RuntimeError("<b>no</b>")
    tokens = text.split() or ["(nothing)"]
    n = len(tokens)
    note = "<i>empty</i>" if text == "" else ""
    return SimpleNamespace(tokens=tokens, weights=np.full((2, 3, n, n), 1 / n), note=note)


def test_a_text_is_read_at_once_and_again_when_submitted():
    reader = SentenceReader(read, "a b c", layer=1, head=2)
    assert reader.view.tokens == ["a", "b", "c"] and reader.view.layer == 1
    reader.view.head = 0
    view = reader.submit("x y")
    assert view is reader.view and view.tokens == ["x", "y"]
    assert (view.layer, view.head) == (1, 0)
    assert reader._place.children == (view,)


def test_the_button_reads_what_stands_in_the_box():
    reader = SentenceReader(read, "a b c")
    reader._box.value = "one two"
    reader._button.click()
    assert reader.view.tokens == ["one", "two"]


def test_a_note_is_shown_escaped_and_goes_away():
    reader = SentenceReader(read, "")
    assert "&lt;i&gt;empty" in reader._words.value
    reader.submit("a")
    assert reader._words.value == ""


def test_an_error_is_shown_escaped_and_raised_and_the_button_lives():
    reader = SentenceReader(read, "a b")
    with pytest.raises(RuntimeError):
        reader.submit("fail")
    assert "&lt;b&gt;no" in reader._words.value and not reader._button.disabled
    assert reader.view.tokens == ["a", "b"]


def test_without_widgets_there_are_picture_and_words():
    bundle = SentenceReader(read, "a b")._repr_mimebundle_()
    assert {"text/html", "image/png", "text/plain"} <= set(bundle)


def test_a_text_that_cannot_be_read_gets_a_sentence_and_the_view_stays():
    def picky(text):
        if not text:
            raise ValueError("0 words, <b>expected</b> 1")
        return read(text)

    reader = SentenceReader(picky, "a b", label="A number")
    view = reader.submit("")
    assert view.tokens == ["a", "b"] and not reader._button.disabled
    assert reader._words.value == '<p role="alert">0 words, &lt;b&gt;expected&lt;/b&gt; 1</p>'
    assert reader._box.description == "A number"


def test_keys_may_be_other_words_than_queries():
    def translate(text):
        weights = np.full((1, 2, 3, 2), 0.5)
        return SimpleNamespace(
            tokens=["x", "y", "z"], key_tokens=text.split(), weights=weights, note=""
        )

    reader = SentenceReader(translate, "a b")
    assert reader.view.tokens == ["x", "y", "z"] and reader.view.key_tokens == ["a", "b"]

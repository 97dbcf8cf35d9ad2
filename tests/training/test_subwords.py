"""Byte pairs: any text can be cut and joined, and the same text makes the same pieces."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.training.checkpoint import CheckpointError
from course_lib.training.corpus import CorpusError
from course_lib.training.data import UNKNOWN
from course_lib.training.subwords import Subwords, kept_subwords, token_loss, write_texts
from course_lib.transformer.encoder_decoder import Config, Transformer

TEXTS = ["a man reads a book", "ein Mann liest ein Buch", "a woman reads", "eine Frau liest"] * 3
SUBWORDS = Subwords.train(TEXTS, 290)


@given(st.text())
def test_any_text_is_cut_and_joined_without_a_loss_or_an_unknown_piece(text):
    pieces = SUBWORDS.cut(text)
    assert SUBWORDS.join(pieces) == text
    ids = SUBWORDS.vocabulary.encode(pieces)
    assert UNKNOWN not in ids and SUBWORDS.vocabulary.decode(ids) == pieces


@pytest.mark.parametrize("text", ["<pad>", "<bos> <eos>", "<unk>", "\r\n\t\0", " a  b ", "\u2028"])
def test_text_that_looks_like_a_special_token_is_text(text):
    pieces = SUBWORDS.cut(text)
    assert SUBWORDS.join(pieces) == text and min(SUBWORDS.vocabulary.encode(pieces)) > UNKNOWN


def test_frequent_words_become_one_piece():
    assert len(SUBWORDS.cut("a man reads")) < len("a man reads") / 2
    assert len(SUBWORDS.pieces) == 290 and len(SUBWORDS.vocabulary) == 294


def test_the_same_text_makes_the_same_pieces():
    assert Subwords.train(TEXTS, 290).pieces == SUBWORDS.pieces


def test_what_is_saved_cuts_alike(tmp_path):
    SUBWORDS.save(tmp_path / "t.json")
    again = Subwords.load(tmp_path / "t.json")
    assert again.pieces == SUBWORDS.pieces
    assert again.cut("ein Mann, é") == SUBWORDS.cut("ein Mann, é")


def test_a_file_without_pieces_is_refused(tmp_path):
    (tmp_path / "t.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"t\.json can't be read as a tokenizer"):
        Subwords.load(tmp_path / "t.json")


def test_fewer_pieces_than_bytes_are_refused():
    with pytest.raises(ValueError, match="255 pieces is too small: each of the 256 bytes"):
        Subwords.train(TEXTS, 255)


def test_a_short_text_makes_fewer_pieces_than_asked_for():
    assert len(Subwords.train(["ab ab"], 5000).pieces) == 257


def test_a_line_too_long_for_a_sentence_is_cut_but_not_learned_from():
    line = "ab" * 50_000
    subwords = Subwords.train([line, "xy xy"], 300)
    assert "xy" in subwords.pieces and "ab" not in subwords.pieces
    assert subwords.join(subwords.cut(line)) == line


def test_long_pairs_are_left_out_and_one_has_to_stay():
    pairs = [("a", "ein"), ("a", "x" * 50), ("y" * 50, "b")]
    assert len(SUBWORDS.short_pairs(pairs, 7)) == 1
    with pytest.raises(CorpusError, match="each of 2 pairs has a side of more than 7 pieces"):
        SUBWORDS.short_pairs(pairs[1:], 7)


def test_a_kept_folder_gives_its_pieces_back_and_refuses_other_settings(tmp_path):
    folder, settings = tmp_path / "deep" / "folder", {"seed": 0, "batch": 2, "data": "d"}
    first = kept_subwords(folder, settings, TEXTS, 290)
    assert kept_subwords(folder, settings, [], 290).pieces == first.pieces
    with pytest.raises(CheckpointError, match="with batch 2, and this command has batch 3: give "
                                              "--batch 2 to go on, or another --out"):  # fmt: skip
        kept_subwords(folder, {**settings, "batch": 3, "data": "e"}, TEXTS, 290)
    with pytest.raises(CheckpointError, match=r"data d, .* data e: give the same files"):
        kept_subwords(folder, {**settings, "data": "e"}, TEXTS, 290)


def test_a_folder_that_was_only_begun_is_taken_up(tmp_path):
    (tmp_path / "settings.json").write_text('{"data": "d"}')
    assert kept_subwords(tmp_path, {"data": "d"}, TEXTS, 290).pieces == SUBWORDS.pieces


def test_the_pieces_of_another_are_not_written_over(tmp_path):
    SUBWORDS.save(tmp_path / "tokenizer.json")
    with pytest.raises(CheckpointError, match=r"has a tokenizer\.json and no settings\.json"):
        kept_subwords(tmp_path, {"data": "d"}, TEXTS, 300)
    assert Subwords.load(tmp_path / "tokenizer.json").pieces == SUBWORDS.pieces


def small_model():
    torch.manual_seed(0)
    return Transformer(Config(n_vocab=294, n_layers=1, d_model=6, d_ff=7, n_heads=2)).eval()


def test_the_loss_of_a_token_does_not_hang_on_the_batches():
    model, pairs = small_model(), SUBWORDS.short_pairs(list(pairwise(TEXTS)), 99)
    with torch.no_grad():
        one, other = (token_loss(model, pairs, SUBWORDS.vocabulary, size) for size in (1, 5))
    assert one == pytest.approx(other, rel=1e-5)


def test_texts_are_written_in_their_order_and_alike_in_any_batch():
    model, texts = small_model(), ["a", "a man reads a book", "eine Frau"]
    together = write_texts(model, SUBWORDS, texts, 20, beam=2)
    assert len(together) == 3
    # Up to 50 pieces more than the longest of a batch: the first pieces are the same.
    for text, written in zip(texts, together, strict=True):
        [alone] = write_texts(model, SUBWORDS, [text], 20, beam=2)
        assert written[:9] == alone[:9]

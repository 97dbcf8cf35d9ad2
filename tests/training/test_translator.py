"""The translator: kept in a file, and the one that ships is as good as the lesson says."""

import pytest
import torch
from safetensors.torch import save_file

from course_lib.training.alignment import measure_alignment, right_places, swapped
from course_lib.training.checkpoint import CheckpointError
from course_lib.training.number_words import number_pieces, number_task
from course_lib.training.translation import exact_match, exact_matches, translate, writer
from course_lib.training.translator import SHIPPED, Translator, english_pieces, train_translator
from course_lib.transformer.recurrent import RecurrentConfig, RecurrentEncoderDecoder


@pytest.fixture(scope="module")
def shipped():
    return Translator.load()


@pytest.fixture(scope="module")
def german():
    return number_task("de")


def test_the_shipped_translator_is_small_and_writes_nearly_every_test_number(shipped, german):
    assert SHIPPED.stat().st_size < 400_000
    assert shipped.vocabulary.pieces == german.vocabulary.pieces
    assert exact_match(shipped.model, german.test, german.vocabulary) >= 0.999


def test_the_shipped_translator_aligns_in_the_swaps(shipped, german):
    found = measure_alignment(shipped.model, german.test, german.vocabulary)
    assert len(found.swaps) > 2000 and found.share_in_swaps >= 0.95


def test_digits_and_english_words_are_read(shipped):
    assert shipped(21) == shipped("21") == shipped("Twenty-one") == "einundzwanzig"
    assert shipped("1,234") == "eintausendzweihundertvierunddreißig"


def test_a_reading_has_a_row_for_each_piece_written_and_a_column_for_each_read(shipped):
    reading = shipped.read("three hundred and forty-two")
    assert reading.key_tokens == ("three", "hundred", "and", "forty", "two")
    assert reading.tokens == ("drei", "hundert", "zwei", "und", "vierzig", "<eos>")
    assert reading.weights.shape == (1, 4, 6, 5) and reading.note == ""
    torch.testing.assert_close(reading.weights.sum(-1), torch.ones(1, 4, 6))
    head_mean = reading.weights.mean((0, 1))
    assert reading.key_tokens[head_mean[2].argmax()] == "two"
    assert reading.key_tokens[head_mean[4].argmax()] == "forty"


def test_a_word_that_it_does_not_know_is_named(shipped):
    assert "apples, <b>" in shipped.read("two apples <b>").note


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "0 words"),
        ("one " * 41, "41 words"),
        (1_000_000, "1000000"),
        ("9" * 99, "999999999999"),
    ],
)
def test_what_cannot_be_translated_gets_a_sentence_with_the_number(text, said):
    with pytest.raises(ValueError, match=said):
        english_pieces(text)


def test_a_saved_translator_comes_back_the_same(tmp_path, shipped):
    shipped.save(tmp_path / "t.safetensors")
    again = Translator.load(tmp_path / "t.safetensors")
    assert again.language == "de" and again.model.config == shipped.model.config
    assert again("999,999") == shipped("999,999") and not again.model.training


def test_another_file_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="can't be read as a translator"):
        Translator.load(tmp_path / "a")
    save_file({"x": torch.ones(1)}, tmp_path / "b")
    with pytest.raises(CheckpointError, match="holds no translator"):
        Translator.load(tmp_path / "b")


def test_a_short_training_is_the_same_each_time_and_leaves_the_model_ready(german):
    (one, first), (two, second) = (train_translator(german, seed=3, steps=4) for _ in range(2))
    assert first.losses == second.losses and not one.model.training
    for mine, other in zip(one.model.parameters(), two.model.parameters(), strict=True):
        assert torch.equal(mine, other)


@pytest.mark.parametrize("kind", ["Transformer", "LSTM", "a model without reader"])
def test_exact_match_in_one_pass_equals_that_of_greedy_decoding(kind, german):
    """On an unfinished model, where there are both."""
    torch.manual_seed(0)
    pairs, vocabulary = german.train[:40], german.vocabulary
    if kind == "LSTM":
        model = RecurrentEncoderDecoder(
            RecurrentConfig(n_vocab=len(vocabulary), d_model=16, attention=True)
        )
    else:
        model = train_translator(german, seed=1, steps=110)[0].model
    if kind == "a model without reader":
        inner, model = model, torch.nn.Module()
        model.forward = inner.forward
    written = translate(model, [source for source, _ in pairs], vocabulary)
    matches = [tuple(w) == target for w, (_, target) in zip(written, pairs, strict=True)]
    assert exact_matches(model, pairs, vocabulary) == matches
    assert kind == "LSTM" or 0 < sum(matches) < 40


def test_each_german_piece_has_its_english_word_and_each_swap_two_places():
    source, target = number_pieces(121_021, "en"), number_pieces(121_021, "de")
    words = [None if at is None else source[at] for at in right_places(source, target)]
    wanted = ["one", "hundred", "one", None, "twenty", "thousand", "one", None, "twenty"]
    assert words == wanted
    assert [target[i] for i in sorted(swapped(target))] == ["ein", "zwanzig", "ein", "zwanzig"]


def test_every_piece_of_every_number_has_a_place():
    for number in (0, 1, 11, 100, 101, 1001, 21_021, 121_121, 999_999, 300_017):
        source, target = number_pieces(number, "en"), number_pieces(number, "de")
        places = [at for at in right_places(source, target) if at is not None]
        assert len(set(places)) == len(places)
        assert len(places) == sum(piece != "und" for piece in target)


def test_a_writer_takes_tokens_from_another_device_than_its_source():
    """The meta device stands for a GPU: mixing it with the CPU raises as a GPU does."""
    source = torch.ones(2, 3, dtype=torch.long, device="meta")
    asked = []

    def model(source, tokens, mask):
        asked.append(tokens.device.type)
        return torch.zeros(*tokens.shape, 5)

    write = writer(model, source)
    assert write(torch.ones(2, 4, dtype=torch.long), None).device.type == "cpu"
    assert asked == ["meta"]

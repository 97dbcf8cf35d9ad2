"""Pairs, vocabulary and batches: every sentence whole, padded at its end, none lost."""

from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.training.data import (
    BOS,
    EOS,
    PAD,
    Vocabulary,
    batches_of,
    batches_once,
    make_batch,
)
from course_lib.training.number_words import (
    draw_numbers,
    join_pieces,
    number_pieces,
    number_task,
    split_task,
)

WORDS = Vocabulary(["a", "b", "c"])
SENTENCES = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=7).map(tuple)


@given(st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=11))
def test_a_batch_holds_every_sentence_whole(pairs):
    batch = make_batch(pairs, WORDS)
    for i, (source, target) in enumerate(pairs):
        assert batch.source_mask[i].tolist() == [True] * len(source) + [False] * (
            batch.source.size(1) - len(source)
        )
        assert batch.source[i, : len(source)].tolist() == WORDS.encode(source)
        row = batch.target[i].tolist()
        assert WORDS.decode(row) == list(target) and row[len(target)] == EOS
        assert set(row[len(target) + 1 :]) <= {PAD} and BOS not in row


def test_each_pair_comes_once_in_a_round_and_in_another_order_the_next():
    pairs = [((word,) * n, ("a",)) for word in "abc" for n in range(1, 8)]
    stream = batches_of(pairs, WORDS, size=2, seed=0, pool=3)
    rounds = []
    for _ in range(2):
        seen = []
        while len(seen) < len(pairs):
            seen += [tuple(WORDS.decode(row)) for row in next(stream).source.tolist()]
        rounds.append(seen)
    assert sorted(rounds[0]) == sorted(rounds[1]) == sorted(source for source, _ in pairs)
    assert rounds[0] != rounds[1]


def test_batches_by_length_hold_little_padding():
    task = number_task("de", n_train=1000, n_validation=1, n_test=1)
    share = {}
    for pool in (1, 20):
        stream = batches_of(task.train, task.vocabulary, 32, seed=0, pool=pool)
        masks = [batch.source_mask for batch in islice(stream, 31)]
        share[pool] = sum((~m).sum().item() for m in masks) / sum(m.numel() for m in masks)
    assert share[20] < 0.1 < 0.25 < share[1]


def test_the_same_seed_gives_the_same_batches_and_another_one_others():
    pairs = [((word,) * n, ("a",)) for word in "abc" for n in range(1, 8)]
    first, again, other = (next(batches_of(pairs, WORDS, 5, seed=s)).source for s in (0, 0, 1))
    assert torch.equal(first, again)
    assert first.shape != other.shape or not torch.equal(first, other)


def test_measuring_sees_every_pair_once_and_knows_its_place():
    pairs = [(("a",) * n, ("b",)) for n in (5, 2, 7, 1, 3)]
    places = []
    for at, batch in batches_once(pairs, WORDS, size=2):
        assert [WORDS.decode(row) for row in batch.source.tolist()] == [
            list(pairs[i][0]) for i in at
        ]
        places += at
    assert sorted(places) == [0, 1, 2, 3, 4]


def test_a_piece_that_was_never_seen_is_unknown_and_shown_so():
    assert WORDS.decode(WORDS.encode(["a", "z"])) == ["a", "<unk>"]


def test_no_pairs_and_a_piece_twice_are_refused():
    with pytest.raises(ValueError, match="0 pairs"):
        next(batches_of([], WORDS, 2, seed=0))
    with pytest.raises(ValueError, match="twice"):
        Vocabulary(["a", "a"])


@given(st.integers(0, 999_999), st.sampled_from(["en", "de", "fr"]))
def test_pieces_join_to_what_num2words_writes(number, language):
    from num2words import num2words

    words = num2words(number, lang=language)
    plain = words.replace("einstausend", "eintausend") if language == "de" else words
    assert join_pieces(number_pieces(number, language), language) == plain.replace("-", " ")


def test_german_pieces_are_cut_where_their_meanings_meet():
    found = number_pieces(917_061, "de")
    assert found == ["neun", "hundert", "siebzehn", "tausend", "ein", "und", "sechzig"]
    assert number_pieces(101_001, "de") == ["ein", "hundert", "ein", "tausend", "eins"]
    assert number_pieces(101_001, "fr") == ["cent", "un", "mille", "un"]


def test_different_numbers_have_different_words():
    for language in ("en", "de", "fr"):
        numbers = draw_numbers(3000, seed=1)
        assert len({tuple(number_pieces(n, language)) for n in numbers}) == 3000


@pytest.mark.parametrize("language", ["de", "fr"])
def test_no_number_is_in_two_parts_and_no_word_is_new_in_the_test(language):
    task = number_task(language, n_train=2000)
    parts = [set(part) for part in (task.train, task.validation, task.test)]
    assert [len(part) for part in parts] == [2000, 500, 2000]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])
    used = {
        piece for part in (task.validation, task.test) for pair in part for s in pair for piece in s
    }
    assert used <= set(task.vocabulary.pieces)


@pytest.mark.parametrize(("number", "language"), [(-1, "de"), (10**6, "fr"), (5, "xx")])
def test_what_cannot_be_written_is_refused(number, language):
    with pytest.raises(ValueError, match=str(number) if language != "xx" else "'xx'"):
        number_pieces(number, language)


def test_a_task_of_given_numbers_is_cut_in_order():
    task = split_task(range(20, 30), n_train=5, n_test=2)
    assert [len(p) for p in (task.train, task.validation, task.test)] == [5, 3, 2]

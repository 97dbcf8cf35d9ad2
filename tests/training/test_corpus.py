"""Sentence pairs from files and from a data set: what is read, what is refused, what leaks."""

import sys
import types

import pytest

from course_lib.training.corpus import (
    CorpusError,
    keep_apart,
    load_multi30k,
    read_parallel,
    scores,
    split_off,
)


@pytest.fixture
def read(tmp_path):
    def read(source, target, **options):
        paths = tmp_path / "a.en", tmp_path / "a.de"
        for path, content in zip(paths, (source, target), strict=True):
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_parallel(*paths, **options)

    return read


def test_line_ends_of_both_kinds_and_a_byte_order_mark_are_no_text(read):
    pairs = read(b"\xef\xbb\xbfone\r\ntwo\r\n", "eins\nzwei")
    assert pairs == [("one", "eins"), ("two", "zwei")]


def test_what_only_python_takes_for_a_line_end_is_none(read):
    assert read("a\u2028b\x0cc\x85d\n", "x\n") == [("a\u2028b\x0cc\x85d", "x")]


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("a\nb\n", "x\n", r"a\.en has 2 lines and .*a\.de has 1: .* equal length"),
        ("a\n\nb\n \n", "x\ny\nz\nw\n", r"2 lines are empty, the first is line 2 of .*a\.en: .*"
                                        "remove such a line from both files, or pass --skip-empty"),
        ("a\nb\n", "x\n\t\n", r"1 line is empty, the first is line 2 of .*a\.de"),
        ("", "x\n", r"a\.en is empty \(0 lines\)"),
        ("a\n", b"\xef\xbb\xbf", r"a\.de is empty \(0 lines\)"),
        ("a\nb\n", "x\nfünf\n".encode("latin-1"),
         r"line 2 of .*a\.de is no UTF-8 text: byte 2 of it is 0xfc; .*iconv -f ISO-8859-1 -t UTF"),
        ("a\n".encode("utf-16"), "x\n", r"line 1 of .*a\.en .*byte 1 of it is 0x.*iconv -f UTF-16"),
        ("a\nb\0c\n", "x\ny\n", r"line 2 of .*a\.en .*byte 2 of it is 0x00; .*iconv -f UTF-16"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit_gets_a_sentence_with_the_numbers(read, source, target, said):
    with pytest.raises(CorpusError, match=said):
        read(source, target)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(CorpusError, match=r"not\.en is not there"):
        read_parallel(tmp_path / "not.en", tmp_path / "not.de")
    with pytest.raises(CorpusError, match=r"is a folder: give a file"):
        read_parallel(tmp_path, tmp_path)


def test_pairs_with_an_empty_side_can_be_skipped_but_not_all(read):
    assert read("a\n\nc\n", "x\ny\n\n", skip_empty=True) == [("a", "x")]
    with pytest.raises(CorpusError, match="all 2 lines have an empty side"):
        read("a\n\n", "\ny\n", skip_empty=True)


def test_no_sentence_of_validation_is_in_training():
    pairs = [(f"s{n % 70}", f"t{n % 90}") for n in range(500)]
    parts = split_off(pairs, 13, seed=0)
    for side in (0, 1):
        assert not {p[side] for p in parts.train} & {p[side] for p in parts.validation}
    assert len(parts.validation) == 13 and parts.n_removed > 0
    assert len(parts.train) + 13 + parts.n_removed == 500


def test_the_seed_draws_the_validation_pairs():
    pairs = [(f"s{n}", f"t{n}") for n in range(100)]
    assert split_off(pairs, 7, seed=1) == split_off(pairs, 7, seed=1) != split_off(pairs, 7, seed=2)


def test_a_part_without_pairs_is_refused():
    with pytest.raises(CorpusError, match=r"0 of 9 pairs can't be split off.*10 pairs or more"):
        split_off([("a", "b")] * 9, 0, seed=0)
    with pytest.raises(CorpusError, match="all 3 pairs to train on share a sentence with one of"):
        keep_apart([("one", "x"), ("one", "y"), ("two", "eins")], [("one", "eins")])


def test_multi30k_is_asked_for_by_its_name_and_split(monkeypatch):
    def load_dataset(name, split):
        assert (name, split) == ("bentrevett/multi30k", "validation")
        return [{"en": "A man. ", "de": "Ein Mann."}, {"en": "", "de": "x"}]

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    assert load_multi30k("validation") == [("A man.", "Ein Mann.")]


def test_without_the_library_or_the_hub_two_files_are_the_way(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(CorpusError, match=r"pip install datasets.*two files of your own with --so"):
        load_multi30k("train")

    def load_dataset(name, split):
        raise ConnectionError("no route")

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    with pytest.raises(CorpusError, match=r"ConnectionError \(no route\).*two files") as caught:
        load_multi30k("train")
    assert "tried load_dataset('bentrevett/multi30k', split='train')" in str(caught.value)


def test_scores_come_with_their_signatures():
    bleu, chrf = scores(["Ein Mann liest ein Buch."], ["Ein Mann liest ein Heft."])
    assert bleu.startswith("BLEU ") and "tok:13a" in bleu and "version:" in bleu
    assert chrf.startswith("chrF2 ") and "nc:6" in chrf

"""The command that trains on real files: it runs, goes on, stops, refuses, and translates."""

import json
import os
import random
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch
from num2words import num2words
from safetensors.torch import load_file

from course_lib.training import translate as command
from course_lib.training.corpus import read_parallel
from course_lib.training.data import UNKNOWN
from course_lib.training.subwords import Subwords
from course_lib.training.translate import main

SIZES = {"layers": 1, "d-model": 6, "d-ff": 7, "heads": 2, "vocabulary": 300, "max-len": 60}
RUN = {"batch": 11, "warmup": 5, "every": 4, "beam": 1, "validation": 5, "device": "cpu"}
SMALL = [f"--{name}={value}" for name, value in (SIZES | RUN).items()]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    numbers = random.Random(0).sample(range(1000), 400)
    for language in ("en", "de"):
        words = [num2words(number, lang=language) + "\n" for number in numbers]
        (folder / f"n.{language}").write_text("".join(words), "utf-8")
    return ["--source", f"{folder / 'n.en'}", "--target", f"{folder / 'n.de'}"]


@pytest.fixture
def go(files, tmp_path, capsys):
    """Run the command; return its exit code, and what it printed as output and as errors."""

    def go(*more, out="out", sentences=files):
        try:
            code = main([*sentences, "--out", f"{tmp_path / out}", *SMALL, *map(str, more)])
        except SystemExit as stop:
            code = stop.code
        return code, *capsys.readouterr()

    return go


def weights(folder):
    return load_file(folder / "run.safetensors")


def test_it_trains_measures_keeps_and_scores(go, tmp_path):
    code, output, errors = go("--steps", 8)
    assert (code, errors) == (0, "")
    for said in ("395 pairs to train on, 5 to validate on", "a vocabulary of 300 pieces",
                 "step 4/8  loss ", "step 8/8  loss ", "perplexity ", "tokens/s", "BLEU ", "chrF2 ",
                 "tok:13a"):  # fmt: skip
        assert said in output
    kept = {path.name for path in (tmp_path / "out").iterdir()}
    assert kept == {"run.safetensors", "settings.json", "tokenizer.json"}
    settings = json.loads((tmp_path / "out" / "settings.json").read_text())
    assert settings["d-model"] == 6 and settings["data"].startswith("395 + 5 pairs, sha256 ")


def test_a_run_in_two_goes_ends_with_the_weights_of_one(go, tmp_path):
    go("--steps", 12, out="whole")
    go("--steps", 8, out="halves")
    code, output, _ = go("--steps", 12, out="halves")
    assert code == 0 and "step 12/12" in output and "step 8/12" not in output
    whole, halves = weights(tmp_path / "whole"), weights(tmp_path / "halves")
    assert whole.keys() == halves.keys()
    for name, x in whole.items():
        torch.testing.assert_close(x, halves[name], rtol=0, atol=0)


def test_ctrl_c_keeps_a_whole_step_and_the_next_run_goes_on(go, tmp_path, monkeypatch):
    go("--steps", 8, out="whole")
    before = signal.getsignal(signal.SIGINT)
    real, calls = command.translation_loss, []

    def interrupting(smoothing):
        def loss(model, batch):
            calls.append(None)
            if len(calls) == 6:
                os.kill(os.getpid(), signal.SIGINT)  # in the midst of a step
            return real(smoothing)(model, batch)

        return loss

    monkeypatch.setattr(command, "translation_loss", interrupting)
    code, output, errors = go("--steps", 8)
    assert code == 130 and "interrupted, 6 steps are kept: to go on" in errors
    assert "BLEU" not in output and signal.getsignal(signal.SIGINT) is before
    monkeypatch.setattr(command, "translation_loss", real)
    code, output, errors = go("--steps", 8)
    assert (code, errors) == (0, "") and "8 steps done, 8 asked for" in output
    whole, again = weights(tmp_path / "whole"), weights(tmp_path / "out")
    for name, x in whole.items():
        torch.testing.assert_close(x, again[name], rtol=0, atol=0)


def test_a_second_ctrl_c_does_not_wait(go, monkeypatch):
    real = command.translation_loss

    def interrupting(smoothing):
        def loss(model, batch):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            return real(smoothing)(model, batch)

        return loss

    monkeypatch.setattr(command, "translation_loss", interrupting)
    code, _, errors = go("--steps", 8)
    assert code == 130 and "interrupted, 0 steps are kept" in errors


def test_an_interrupt_outside_of_training_ends_with_a_line(go, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command.sub, "write_texts", stop)
    code, _, errors = go("--steps", 1)
    assert code == 130 and errors == "interrupted: to go on, give the same command again\n"


def test_a_finished_run_is_scored_again_and_not_trained(go, tmp_path):
    go("--steps", 4)
    before = weights(tmp_path / "out")
    code, output, _ = go("--steps", 2, "--beam", 2)
    assert code == 0 and "4 steps done, 2 asked for" in output and "beam 2" in output
    after = weights(tmp_path / "out")
    assert all(torch.equal(x, after[name]) for name, x in before.items())


def test_what_is_trained_translates_a_text(go, tmp_path):
    go("--steps", 4)
    code, output, errors = go("--translate", " forty-two ", sentences=[])
    assert (code, errors) == (0, "") and output.endswith("\n")
    _, odd, errors = go("--translate", "caf\udce9 " * 99, sentences=[])
    assert odd and "pieces the first 60 are read" in errors


def test_nothing_is_translated_without_a_trained_folder(go, tmp_path):
    code, output, errors = go("--translate", "one", sentences=[])
    assert (code, output) == (2, "") and "holds no translator: it has no settings.json" in errors
    go("--steps", 1)
    (tmp_path / "out" / "run.safetensors").unlink()
    code, _, errors = go("--translate", "one", sentences=[])
    assert code == 2 and "has no run.safetensors yet: train it first" in errors


def test_no_piece_of_any_sentence_is_unknown_and_training_alone_makes_them(go, files, tmp_path):
    source, target = tmp_path / "v.en", tmp_path / "v.de"
    source.write_text("qqqq qqqq qqqq\n" * 9), target.write_text("ぬぬ ぬぬ\n" * 9)
    go("--steps", 1, "--validation-source", source, "--validation-target", target)
    subwords = Subwords.load(tmp_path / "out" / "tokenizer.json")
    assert not any("qq" in piece for piece in subwords.pieces)
    for pair in [*read_parallel(files[1], files[3]), ("qqqq", "ぬぬ")]:
        for text in pair:
            assert UNKNOWN not in subwords.vocabulary.encode(subwords.cut(text))


def test_validation_files_are_kept_out_of_training(go, files, tmp_path):
    paths = [tmp_path / "v.en", tmp_path / "v.de"]
    for path, whole in zip(paths, files[1::2], strict=True):
        path.write_text("\n".join(Path(whole).read_text("utf-8").split("\n")[:7]), "utf-8")
    more = ("--validation-source", paths[0], "--validation-target", paths[1])
    code, output, _ = go("--steps", 1, *more)
    assert code == 0 and "393 pairs to train on, 7 to validate on; 7 that share" in output


def test_a_folder_of_other_settings_or_sentences_is_refused(go, files):
    go("--steps", 1)
    code, _, errors = go("--steps", 2, "--d-ff", 11, "--heads", 3)
    assert code == 2 and "with d-ff 7, and this command has d-ff 11: give --d-ff 7 to" in errors
    assert errors.startswith("error: ") and errors.count("\n") == 1
    code, _, errors = go(sentences=[*files[:3], files[1]])
    assert code == 2 and "was made with data 395 + 5 pairs" in errors and "the same files" in errors


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--heads", "4"], "error: d_model 6 is not divisible by n_heads 4"),
        (["--max-len", "1"], "error: each of 395 pairs has a side of more than 1"),
        (["--vocabulary", "255"], "--vocabulary: 255 is not from 256 to below"),
        (["--steps", "0"], "--steps: 0 is not from 1 to below"),
        (["--steps", "two"], "--steps: invalid number value: 'two'"),
        (["--dropout", "1"], "--dropout: 1 is not from 0 to below 1"),
        (["--alpha", "nan"], "--alpha: nan is not from 0"),
        (["--rate-factor", "1e8"], "error: the loss became "),
        (["--dataset", "multi30k"], "error: give either --source and --target, or --dataset"),
        (["--validation-source", "v"], "error: a source and a target file go together"),
        (["--translate", "  "], "error: the text of --translate is empty"),
        (["--out", ""], "error: the text of --out is empty"),
        (["--source", "nowhere"], "error: nowhere is not there"),
    ],
)
def test_what_does_not_fit_ends_with_code_2_and_a_sentence(go, more, said):
    code, output, errors = go("--steps", 40, *more)
    assert code == 2 and said in errors and "BLEU" not in output
    assert errors.count("\n") == 1 or errors.startswith("usage: ")


def test_a_gpu_that_is_not_there_is_said(go, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, _, errors = go("--device", "cuda")
    assert code == 2 and "no CUDA device on this machine: give --device cpu" in errors


def test_a_place_that_cannot_be_written_is_said(go, tmp_path):
    (tmp_path / "file").write_text("")
    for out in ("file", "file/below"):
        code, _, errors = go(out=out)
        assert code == 2 and "nothing can be written into the folder" in errors


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("run.safetensors", "half", "run.safetensors can't be read as a checkpoint"),
        ("settings.json", "{", "settings.json can't be read"),
        ("settings.json", "[]", "settings.json holds no settings of this command"),
        ("tokenizer.json", "{", "tokenizer.json can't be read as a tokenizer"),
        ("settings.json", None, "has a tokenizer.json and no settings.json: give another --out"),
        ("tokenizer.json", None, "tokenizer.json can't be read as a tokenizer"),
    ],
)
def test_a_damaged_folder_is_refused(go, tmp_path, name, content, said):
    go("--steps", 1)
    path = tmp_path / "out" / name
    path.unlink() if content is None else path.write_text(content)
    code, _, errors = go("--steps", 2)
    assert code == 2 and said in errors and errors.count("\n") == 1


def test_a_run_killed_while_it_writes_its_checkpoint_goes_on(go, tmp_path, monkeypatch):
    go("--steps", 8, out="whole")
    go("--steps", 4)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: os.abort.no_such_name)  # dies before the rename
        with pytest.raises(AttributeError):
            go("--steps", 8)
    code, _, _ = go("--steps", 8)
    assert code == 0
    whole, again = weights(tmp_path / "whole"), weights(tmp_path / "out")
    assert all(torch.equal(x, again[name]) for name, x in whole.items())


def test_a_corpus_of_one_word_leaves_nothing_to_train_on(go, tmp_path):
    for name in ("one.en", "one.de"):
        (tmp_path / name).write_text("word\n" * 50)
    sentences = ["--source", f"{tmp_path / 'one.en'}", "--target", f"{tmp_path / 'one.de'}"]
    code, _, errors = go(sentences=sentences)
    assert code == 2 and "all 45 pairs to train on share a sentence with one of the 5" in errors


def test_multi30k_brings_its_own_validation_part(go, monkeypatch):
    def load_dataset(name, split):
        numbers = range(100, 150) if split == "train" else range(145, 155)
        return [{"en": num2words(n), "de": num2words(n, lang="de")} for n in numbers]

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    code, output, _ = go("--steps", 1, sentences=["--dataset", "multi30k"])
    assert code == 0 and "45 pairs to train on, 10 to validate on; 5 that share" in output
    monkeypatch.setitem(sys.modules, "datasets", None)
    code, _, errors = go(sentences=["--dataset", "multi30k"], out="other")
    assert code == 2 and "pip install datasets" in errors and "Traceback" not in errors


def test_the_help_shows_an_example():
    shown = subprocess.run([sys.executable, "-m", "course_lib.training.translate", "--help"],
                           capture_output=True, text=True, check=True).stdout  # fmt: skip
    assert "--source train.en --target train.de --out my_translator" in shown

"""Train the Transformer of 2017 on pairs of sentences, score it, and translate with it.

An example, on two files with one sentence a line:
  python -m course_lib.training.translate --source train.en --target train.de --out my_translator
and, when it is trained:
  python -m course_lib.training.translate --out my_translator --translate "A man is sleeping."

The same command given again goes on where it stopped. Ctrl-C stops it after the step.
"""

import argparse
import math
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from course_lib.training import corpus
from course_lib.training import subwords as sub
from course_lib.training.checkpoint import CheckpointError, History
from course_lib.training.data import PAD, Batch, batches_of
from course_lib.training.loop import NonFiniteLoss, fit
from course_lib.training.schedule import noam_learning_rate
from course_lib.training.translation import translation_loss
from course_lib.transformer.encoder_decoder import Config, Transformer

USAGE = """python -m course_lib.training.translate --out FOLDER [options]
       (--source FILE --target FILE | --dataset multi30k | --translate TEXT)"""
MACHINE = OSError, torch.OutOfMemoryError
# Option, default, lowest, the first too high, help. The ones of MAKING make a run what it is.
OPTIONS = (
    ("seed", 0, 0, 2**32, "of the split, the weights, the batches and the dropout"),
    ("vocabulary", 8000, sub.N_BYTES, 10**6, "byte-pair pieces, both languages together"),
    ("layers", 3, 1, 100, "of the encoder, and of the decoder"),
    ("d-model", 256, 1, 10**5, "width of the model"),
    ("d-ff", 1024, 1, 10**6, "width of the feed-forward parts"),
    ("heads", 4, 1, 1000, "of each attention"),
    ("dropout", 0.1, 0, 1, "share of numbers dropped in training"),
    ("batch", 64, 1, 10**5, "sentence pairs in a step"),
    ("warmup", 1000, 1, 10**7, "steps in which the learning rate rises (Noam)"),
    ("rate-factor", 1.0, 0, 10**9, "multiplies the learning rate"),
    ("smoothing", 0.1, 0, 1, "of the labels"),
    (
        "max-len",
        100,
        1,
        10**5,
        "pieces; longer pairs are not trained on, longer texts read up to here",
    ),
    ("validation", 1000, 1, 10**7, "pairs to split off, at most a tenth of all"),
    ("steps", 10_000, 1, 10**9, "of the whole run"),
    ("every", 500, 1, 10**9, "steps from one measurement to the next; each is saved"),
    ("beam", 4, 1, 100, "hypotheses that are kept in writing; 1 is greedy"),
    ("alpha", 0.6, 0, 10, "length penalty of the beam"),
)
MAKING = tuple(option[0] for option in OPTIONS[:12])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 2 after an error of its own, or 130 after an interrupt."""
    args = _arguments(argv)
    try:
        _train(args) if args.translate is None else _translate(args)
    except (corpus.CorpusError, CheckpointError, NonFiniteLoss, *MACHINE) as error:
        print("error:", " ".join(str(error).split()), file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print(f"interrupted{stop}: to go on, give the same command again", file=sys.stderr)
        return 130
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        usage=USAGE,
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--out", metavar="FOLDER", required=True, help="where the translator is kept")
    add("--translate", metavar="TEXT", help="translate with a finished folder; don't train")
    add("--dataset", choices=["multi30k"], help="fetch captions, English to German")
    for name in ("source", "target", "validation-source", "validation-target"):
        add(f"--{name}", metavar="FILE", help="UTF-8, one sentence a line")
    add("--skip-empty", action="store_true", help="leave out pairs with an empty line")
    add("--device", choices=["auto", "cpu", "cuda"], default="auto", help="(default auto)")
    for name, default, lowest, too_high, about in OPTIONS:
        kind = _number(type(default), lowest, too_high)
        add(f"--{name}", type=kind, default=default, metavar="N", help=f"{about} ({default})")
    args = parser.parse_args(argv)
    args.making = {name: getattr(args, name.replace("-", "_")) for name in MAKING}
    if wrong := _wrong(args):
        parser.exit(2, f"error: {wrong}\n")
    if args.device == "auto":
        args.device = "cuda" if torch.cuda.is_available() else "cpu"
    return args


def _wrong(args: argparse.Namespace) -> str:
    """Say what does not fit in options that are right one by one."""
    files = (args.source, args.target), (args.validation_source, args.validation_target)
    if any((one is None) != (other is None) for one, other in files):
        return "a source and a target file go together: give both"
    if args.translate is None and bool(args.dataset) == bool(args.source):
        return "give either --source and --target, or --dataset multi30k"
    if args.dataset and args.validation_source:
        return "--dataset brings its own pairs to validate on: leave out the files"
    for name in ("out", "translate", "source", "target"):
        if getattr(args, name) is not None and not getattr(args, name).strip():
            return f"the text of --{name} is empty"
    if args.device == "cuda" and not torch.cuda.is_available():
        return "torch finds no CUDA device on this machine: give --device cpu"
    try:
        _config(args.making, args.vocabulary)
    except ValueError as error:
        return str(error)
    return ""


def _number(kind: type, lowest: float, too_high: float):
    def number(text: str):
        value = kind(text)
        if not lowest <= value < too_high:
            raise argparse.ArgumentTypeError(f"{text} is not from {lowest} to below {too_high}")
        return value

    return number


def _train(args: argparse.Namespace) -> None:
    """Make the translator of a folder, or go on with it, and score what it writes."""
    parts = _parts(args)
    print(
        f"{len(parts.train):,} pairs to train on, {len(parts.validation):,} to validate on; "
        f"{parts.n_removed:,} that share a sentence with validation taken out of training"
    )
    settings = {**args.making, "data": corpus.fingerprint(parts)}
    texts = (text for pair in parts.train for text in pair)
    subwords = sub.kept_subwords(Path(args.out), settings, texts, args.vocabulary)
    print(f"a vocabulary of {len(subwords.pieces):,} pieces; {args.vocabulary:,} were asked for")
    train, validation = (subwords.short_pairs(part, args.max_len) for part in parts[:2])
    n_train, n_validation = len(parts.train) - len(train), len(parts.validation) - len(validation)
    print(
        f"longer than {args.max_len} pieces: {n_train:,} pairs dropped from training, "
        f"{n_validation:,} from the validation loss"
    )
    torch.manual_seed(args.seed)
    model = Transformer(_config(settings, len(subwords.vocabulary))).to(args.device)
    print(f"a model of {model.config.n_parameters():,} parameters, on {args.device}", flush=True)
    _fit(model, train, validation, subwords.vocabulary, args)
    print(f"writing {len(parts.validation):,} translations, beam {args.beam}", flush=True)
    sources, targets = zip(*parts.validation, strict=True)
    written = sub.write_texts(model, subwords, sources, args.max_len, args.beam, args.alpha)
    print(*corpus.scores(written, targets), sep="\n")


def _fit(model, train, validation, vocabulary, args: argparse.Namespace) -> None:
    progress, smoothed = _Progress(args.every), translation_loss(args.smoothing)

    def loss(model: nn.Module, batch: Batch) -> torch.Tensor:
        progress.n_tokens += int((batch.target != PAD).sum())
        return smoothed(model, batch)

    before = signal.signal(signal.SIGINT, progress.stop)
    try:
        history = fit(
            model,
            batches_of(train, vocabulary, args.batch, args.seed),
            loss,
            steps=args.steps,
            optimizer=torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9),
            schedule=lambda n: args.rate_factor * noam_learning_rate(n, args.d_model, args.warmup),
            evaluate=lambda model: -sub.token_loss(model, validation, vocabulary, args.batch),
            every=args.every,
            watch=progress,
            checkpoint=Path(args.out) / sub.CHECKPOINT,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    if progress.asked or history.ended.startswith("interrupted"):
        raise KeyboardInterrupt(f", {len(history.losses):,} steps are kept")


def _config(making: dict, n_vocab: int) -> Config:
    options = {"n_layers": "layers", "d_model": "d-model", "d_ff": "d-ff", "n_heads": "heads"}
    sizes = {name: making[option] for name, option in options.items()}
    return Config(n_vocab=n_vocab, dropout=making["dropout"], **sizes)


def _parts(args: argparse.Namespace) -> corpus.Parts:
    if args.dataset:
        return corpus.keep_apart(*map(corpus.load_multi30k, ("train", "validation")))
    pairs = corpus.read_parallel(args.source, args.target, skip_empty=args.skip_empty)
    if args.validation_source is None:
        return corpus.split_off(pairs, min(args.validation, len(pairs) // 10), args.seed)
    held = args.validation_source, args.validation_target
    return corpus.keep_apart(pairs, corpus.read_parallel(*held, skip_empty=args.skip_empty))


class _Progress:
    """What the loop calls after each step: it prints the measurements, and stops when asked to."""

    def __init__(self, every: int):
        self.every, self.asked, self.n_tokens = every, False, 0
        self.start = time.perf_counter()

    def stop(self, *_) -> None:
        """Let a first Ctrl-C wait until a whole step can be saved; a second one doesn't wait."""
        self.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("stopping after this step", file=sys.stderr)

    def __call__(self, history: History, steps: int) -> None:
        done = len(history.losses)
        if history.ended or done % self.every == 0:
            loss, seconds = -history.evaluations[-1][1], time.perf_counter() - self.start
            print(
                f"step {done:,}/{steps:,}  loss {history.recent(self.every):.3f}  "
                f"validation loss {loss:.3f}  perplexity {math.exp(min(loss, 700)):.2f}  "
                f"{self.n_tokens / seconds:,.0f} tokens/s  {seconds:.0f} s",
                flush=True,
            )
        if history.ended:
            best = max(history.evaluations, key=lambda one: (one[1], one[0]))[0]
            print(f"{done:,} steps done, {steps:,} asked for; the best, step {best:,}, is used")
        elif self.asked:
            raise KeyboardInterrupt


def _translate(args: argparse.Namespace) -> None:
    """Print the translation of one text by the translator of a folder."""
    folder, text = Path(args.out), args.translate.strip().encode(errors="replace").decode()
    making = sub.kept_settings(folder, MAKING)
    subwords = sub.Subwords.load(folder / sub.TOKENIZER)
    model = Transformer(_config(making, len(subwords.vocabulary)))
    sub.load_weights(model, folder)
    n, most = len(subwords.cut(text)), making["max-len"]
    if n > most:
        print(f"note: of {n:,} pieces the first {most:,} are read", file=sys.stderr)
    print(*sub.write_texts(model.to(args.device), subwords, [text], most, args.beam, args.alpha))


if __name__ == "__main__":
    sys.exit(main())

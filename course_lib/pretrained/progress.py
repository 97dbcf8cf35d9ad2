"""How far a download has come."""

import sys

from tqdm import tqdm

MEGABYTE = 10**6


class Progress:
    """Show a moving bar in a terminal and a notebook, and a line for each quarter elsewhere."""

    def __init__(self, total: int, have: int = 0, stream=None):
        self.total, self.have = total, have
        self.stream = stream or sys.stdout
        self.quarter = 4 * have // total
        self.bar = None
        # The output of a notebook is no terminal, yet it moves back to the start of a line.
        if self.stream.isatty() or type(self.stream).__module__.startswith("ipykernel"):
            self.bar = tqdm(
                total=total, initial=have, file=self.stream, unit="B", unit_scale=True, ncols=78
            )

    def reach(self, have: int) -> None:
        """Say that so many bytes are here."""
        if self.bar is not None:
            self.bar.update(have - self.have)
        self.have = have
        quarter = 4 * have // self.total
        if self.bar is None and quarter > self.quarter:
            megabytes = f"{have / MEGABYTE:.0f} of {self.total / MEGABYTE:.0f} MB"
            print(f"  {megabytes}", file=self.stream, flush=True)
        self.quarter = quarter

    def close(self) -> None:
        """Leave a clean line."""
        if self.bar is not None:
            self.bar.close()

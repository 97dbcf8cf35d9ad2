"""Keep a learner's huge tensor from taking the kernel down."""

import sys
from contextlib import contextmanager

import psutil

GIB = 2**30


def allowance() -> int:
    """How many bytes a check may take: half of what is free, at least 1 GiB, at most 4."""
    return min(4 * GIB, max(GIB, psutil.virtual_memory().available // 2))


class MemoryWatch:
    """Says when this process has taken more memory than it may since the watch began."""

    def __init__(self, limit: int):
        self.process = psutil.Process()
        self.most = self.process.memory_info().rss + limit

    def is_exceeded(self) -> bool:
        return self.process.memory_info().rss > self.most


@contextmanager
def limited_address_space(limit: int):
    """On Linux, let a request for more than ``limit`` further bytes fail with an error."""
    if sys.platform != "linux":
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = psutil.Process().memory_info().vms + limit
    if soft != resource.RLIM_INFINITY:
        most = min(most, soft)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

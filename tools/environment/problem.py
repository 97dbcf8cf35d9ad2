"""The one exception that a learner sees, and what pip's words mean in plain ones."""

import platform
import re
import sys
from pathlib import Path

NETWORK = re.compile(
    r"NewConnectionError|NameResolutionError|Failed to establish|Max retries|Connection refused"
    r"|Temporary failure in name resolution|Name or service not known|nodename nor servname"
    r"|Network is unreachable|No route to host|ConnectTimeout|ReadTimeout|[Tt]imed out|ProxyError"
    r"|Connection reset|Connection aborted|ProtocolError|IncompleteRead|incomplete-download"
)
CERTIFICATE = re.compile(r"CERTIFICATE_VERIFY_FAILED|SSLCertVerificationError")
FULL_DISK = re.compile(r"No space left on device|Errno 28|Disk quota exceeded|Errno 122")
NO_BUILD = re.compile(r"(?:No matching distribution found for|satisfies the requirement) (\S+)")
REFUSED = re.compile(r"Permission denied: '([^']+)'|Read-only file system: '([^']+)'")


class SetupProblem(Exception):
    """A fault of the machine or the network: what is wrong and the remedy, in one line."""


def full_disk(where: Path) -> SetupProblem:
    """The disk ran full while something was written."""
    return SetupProblem(
        f"The disk is full (writing to {where}). Free some space, or point TMPDIR and the course"
        " to a larger disk, then run the same command again."
    )


def explain(output: str, log: Path) -> SetupProblem:
    """Turn the output of a pip that failed into one line with its remedy."""
    if FULL_DISK.search(output):
        return full_disk(log.parent)
    if refused := REFUSED.search(output):
        return SetupProblem(
            f"Not allowed to write {refused[1] or refused[2]}. Put the course into a folder of"
            " your own, then run the same command again."
        )
    if CERTIFICATE.search(output):
        return SetupProblem(
            "The network answers with a certificate that pip does not trust. Behind a company"
            " proxy, set PIP_CERT to the proxy's certificate file, then run the same command again."
        )
    if NETWORK.search(output):
        return SetupProblem(
            "The package index does not answer. Check the network (behind a proxy, set"
            " HTTPS_PROXY), then run the same command again: what is downloaded is kept."
        )
    if missing := NO_BUILD.search(output):
        return SetupProblem(
            f"There is no build of {missing[1]} for Python {platform.python_version()} on"
            f" {platform.system()} {platform.machine()} ({64 if sys.maxsize > 2**32 else 32}-bit)."
            " Try another Python of 3.10 to 3.13: make lab PYTHON=/path/to/python3.12"
        )
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    last = (errors or lines or ["without a word"])[-1]
    return SetupProblem(f"pip stopped ({last}). The whole output is in {log}.")

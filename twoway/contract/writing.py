"""Writing files whole or not at all, with the owner they should have."""

import errno
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from twoway.contract.files import open_run_file
from twoway.contract.folders import give
from twoway.errors import DiskFullError

# Free disk space at which a run ends, because a guest on a full disk loses data without an error. A
# guest writes some 30 MB/s, in bursts, and the free space is checked ten times a second.
_LEAST_FREE_BYTES = 64 << 20
# Free inodes at which a run ends: the report, the captures' compressed forms and the next run need
# some 100.
_LEAST_FREE_FILES = 256


def write_json(path: Path, document: Any, rows: str = "") -> None:
    """Write a JSON document, whole or not at all; each element of its list `rows` is one line."""
    shown = {**document, rows: []} if rows else document
    text = json.dumps(shown, indent=1, allow_nan=False)
    if rows:
        lines = ",\n  ".join(json.dumps(row, allow_nan=False) for row in document[rows])
        text = text.replace(f'"{rows}": []', f'"{rows}": [\n  {lines}\n ]')
    with written_aside(path) as file:
        file.write(text.encode() + b"\n")


@contextmanager
def written_aside(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that gets its name when the `with` succeeds.

    If the `with` fails, no file is left.

    Raises: OSError with the file's name if the disk refuses.
    """
    partial = path.with_name(f".{uuid.uuid4().hex}")
    try:
        with open_run_file(path.parent, partial.name, new=True) as file:
            yield file
        partial.replace(path)
    except OSError as error:
        if error.filename not in {None, partial.name, str(partial)}:
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def refuse_full_disk(folder: Path) -> None:
    """Check that the disk has room for a guest until the next check.

    Args:
        folder: a run's folder.

    Raises: DiskFullError if there is less than 64 MiB, or room for fewer than 256 files.
    """
    disk = os.statvfs(folder)
    if disk.f_bavail * disk.f_frsize < _LEAST_FREE_BYTES:
        raise DiskFullError(
            f"{folder.parent}: less than {_LEAST_FREE_BYTES >> 20} MiB left on the disk"
        )
    if (
        disk.f_files and disk.f_favail < _LEAST_FREE_FILES
    ):  # f_files is 0 if the disk has no such limit
        raise DiskFullError(
            f"{folder.parent}: room for fewer than {_LEAST_FREE_FILES} files left on the disk"
        )


def out_of_space(error: OSError) -> bool:
    """Tell whether an error means a full disk or an exceeded quota."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT}


def make_folder(path: Path) -> None:
    """Make a folder and its parents, each with its parent's owner."""
    if not path.exists():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        chown_like_parent(path)


def chown_like_parent(path: Path) -> None:
    """Give a path that root created to the owner of its parent folder.

    Args:
        path: a file, a folder with everything in it, or a link (not the link's target).
    """
    if os.geteuid() == 0:
        owner = path.parent.stat()
        give(path, owner.st_uid, owner.st_gid)

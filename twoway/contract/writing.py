"""Writing files whole or not at all, with the owner they should have."""

import errno
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from twoway.contract.files import open_run_file
from twoway.contract.folders import give
from twoway.errors import DiskFullError

# Free disk space at which a run ends, because a guest on a full disk loses data without an error. A
# guest writes some 30 MB/s, in bursts, and the free space is checked ten times a second.
_LEAST_FREE_BYTES = 64 << 20


def write_json(path: Path, document: Any) -> None:
    """Write a JSON document, whole or not at all."""
    with written_aside(path) as file:
        file.write(json.dumps(document, indent=1, allow_nan=False).encode() + b"\n")


@contextmanager
def written_aside(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that gets its name when the `with` succeeds.

    If the `with` fails, no file is left.
    """
    partial = path.with_name(f".{uuid.uuid4().hex}")
    try:
        with open_run_file(path.parent, partial.name, new=True) as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def refuse_full_disk(folder: Path) -> None:
    """Check that the disk has room for a guest until the next check.

    Args:
        folder: a run's folder.

    Raises: DiskFullError if there is less than 64 MiB.
    """
    if shutil.disk_usage(folder).free < _LEAST_FREE_BYTES:
        raise DiskFullError(
            f"{folder.parent}: less than {_LEAST_FREE_BYTES >> 20} MiB left on the disk"
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

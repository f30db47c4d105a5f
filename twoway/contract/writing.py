"""Files that other stages read, written whole or not at all; and what identifies a file."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from twoway.errors import DiskFullError

# A guest writes files when it finds time to, and loses without a word what there is no room for:
# its runs end before that. It writes some 30 MB/s, in bursts, and is looked at ten times a second.
_LEAST_FREE_BYTES = 64 << 20


def write_json(path: Path, document: Any) -> None:
    """Write a JSON document, whole or not at all."""
    with written_aside(path) as file:
        file.write(json.dumps(document, indent=1).encode() + b"\n")


@contextmanager
def written_aside(path: Path) -> Iterator[BinaryIO]:
    """A file that gets its name when it is whole; of one that never is nothing stays."""
    partial = path.with_name(f".{path.name}")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def refuse_full_disk(folder: Path) -> None:
    """See that there is room for what a guest writes to a run's folder until the next look.

    Raises: DiskFullError if there is not.
    """
    if shutil.disk_usage(folder).free < _LEAST_FREE_BYTES:
        raise DiskFullError(
            f"{folder.parent}: less than {_LEAST_FREE_BYTES >> 20} MiB left on the disk"
        )


def out_of_space(error: OSError) -> bool:
    """Whether a disk is full, or a user's share of it."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT}


@cache
def sha256(path: Path) -> str:
    """The digest of a file's content, which does not change while this process lives."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def module_identity(path: Path) -> dict[str, str]:
    """What a kernel module is, and what it says it was built from (modinfo's field revision)."""
    found = re.search(rb"\0revision=([^\0]*)\0", path.read_bytes())
    return {"sha256": sha256(path), "revision": found[1].decode() if found else "unknown"}


def make_folder(path: Path) -> None:
    """Make a folder if it is not there, and those above it."""
    if not path.exists():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        hand_over(path)


def hand_over(path: Path) -> None:
    """Have what root made belong to whom the folder is that it is in.

    Args:
        path: a file, a folder with all that is in it, or a link, not what it leads to.
    """
    if os.geteuid() == 0:
        owner = path.parent.stat()
        inside = () if path.is_symlink() else path.rglob("*")
        for made in (path, *inside):
            os.chown(made, owner.st_uid, owner.st_gid, follow_symlinks=False)

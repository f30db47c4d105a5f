"""Files that other stages read, written whole or not at all; and what identifies a file."""

import errno
import hashlib
import json
import os
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from twoway.errors import DiskFullError

# A guest writes files when it finds time to, and loses without a word what there is no room for:
# its runs end before that. It writes some 30 MB/s, in bursts, and is looked at ten times a second.
_LEAST_FREE_BYTES = 64 << 20


def write_json(path: Path, document: Any) -> None:
    """Write a JSON document, whole or not at all."""
    partial = path.with_name(f".{path.name}")
    partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


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


def owner_of(path: Path) -> tuple[int, int]:
    """User and group of a file or folder, or of where it would be made."""
    there = path.absolute()
    while not there.exists():
        there = there.parent
    return there.stat().st_uid, there.stat().st_gid


def hand_over(owner: tuple[int, int], folder: Path, *more: Path) -> None:
    """Have what root made belong to whom it was made for; nothing unless this is root.

    Args:
        owner: user and group.
        folder: with all that is in it.
        more: without what is in them; of links the link itself.
    """
    if os.geteuid() == 0:
        for path in (*more, folder, *folder.rglob("*")):
            os.chown(path, *owner, follow_symlinks=False)

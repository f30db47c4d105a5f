"""Removing and measuring folders with untrusted content, however deep they are nested.

In Python 3.11 shutil.rmtree and Path.rglob recurse for each level, and rmtree holds a descriptor
for each.
"""

import contextlib
import os
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def remove_folder(path: Path) -> None:
    """Remove a folder and everything in it; follow no link.

    Each folder found is moved to the top and emptied there, so that paths stay short.

    Raises: OSError if something in it cannot be removed.
    """
    top = _open(path)
    try:
        mine, found = uuid.uuid4().hex, ["."]
        for name in found:
            opened = _open(name, top)
            try:
                for inner in _empty(opened):
                    os.close(_open(inner, opened))  # only a writable folder can move
                    found.append(f"{mine}-{len(found)}")
                    os.rename(inner, found[-1], src_dir_fd=opened, dst_dir_fd=top)
            finally:
                os.close(opened)
            if name != ".":
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    path.rmdir()


def _open(path: Path | str, inside: int | None = None) -> int:
    """Open a folder, readable and writable if it is ours; return its descriptor."""
    try:
        opened = os.open(path, _FOLDER, dir_fd=inside)
    except PermissionError:
        os.chmod(path, 0o700, dir_fd=inside)  # a folder: O_NOFOLLOW gives the same error for a link
        opened = os.open(path, _FOLDER, dir_fd=inside)
    with contextlib.suppress(PermissionError):
        os.fchmod(opened, 0o700)
    return opened


def _empty(opened: int) -> list[str]:
    """Remove everything but folders from a folder; return their names."""
    with os.scandir(opened) as entries:
        there = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in there:
        if not is_folder:
            os.unlink(name, dir_fd=opened)
    return [name for name, is_folder in there if is_folder]


def disk_bytes(paths: Sequence[Path]) -> list[int]:
    """Ask `du` for the disk space of files and folders; 0 if it cannot tell."""
    argv = ["du", "-s", "-0", "-B1", "--files0-from=-"]
    named = b"".join(os.fsencode(path) + b"\0" for path in paths)
    said = subprocess.run(argv, input=named, capture_output=True, check=False).stdout
    lines = (line.partition(b"\t") for line in said.split(b"\0"))
    sizes = {os.fsdecode(path): int(size) for size, _, path in lines if path}
    return [sizes.get(str(path), 0) for path in paths]

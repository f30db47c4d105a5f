"""Folders with untrusted content, or of another user: removing, measuring, giving away.

In Python 3.11 shutil.rmtree and Path.rglob recurse for each level, and rmtree holds a descriptor
for each.

Whoever may write to a folder can put a link in place of a file or folder there at any moment: so
root changes owners and rights by descriptor.
"""

import contextlib
import os
import stat
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
# Longest chain of links to follow, as the kernel's own.
_MOST_LINKS = 40


def give(path: Path, user: int, group: int) -> None:
    """Give a file, a link, or a folder with everything in it to a user; follow no link.

    A file with another name elsewhere is left as it is: it may be any file of the machine.
    """
    with contextlib.ExitStack() as stack:
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, parent)
        _give_one(path.name, parent, user, group)
        for _, folders, files, opened in os.fwalk(path.name, dir_fd=parent):
            for name in (*folders, *files):
                _give_one(name, opened, user, group)


def _give_one(name: str, inside: int, user: int, group: int) -> None:
    opened = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=inside)
    try:
        found = os.fstat(opened)
        if stat.S_ISDIR(found.st_mode) or found.st_nlink == 1:
            os.chown(f"/proc/self/fd/{opened}", user, group)  # the file itself, even a link
    finally:
        os.close(opened)


def changeable_by_others(path: Path) -> Path | None:
    """Find a file or folder on the way to a folder, or in it, that another user can replace.

    Returns: the first one that belongs to another user than root, or is writable for others; None
        if there is none.
    """
    inside = path.iterdir() if path.is_dir() else ()
    return next((each for each in (*_steps_to(path), *inside) if _changeable(each)), None)


def _steps_to(path: Path) -> Iterator[Path]:
    """Yield the existing folders and links that the kernel passes on the way to a path."""
    here, left = Path("/"), [*reversed(path.absolute().parts[1:])]
    yield here
    links = 0
    while left:
        part = left.pop()
        here = here.parent if part == ".." else here / part
        if not os.path.lexists(here):
            return
        yield here
        if here.is_symlink():
            links += 1
            if links > _MOST_LINKS:
                return
            to = here.readlink()
            left += reversed(to.parts[1:] if to.is_absolute() else to.parts)
            here = Path("/") if to.is_absolute() else here.parent


def _changeable(path: Path) -> bool:
    found = os.lstat(path)
    if found.st_uid != 0:
        return True
    if stat.S_ISLNK(found.st_mode):
        return False  # all have the mode 0777
    by_others = found.st_mode & (0o002 if found.st_gid == 0 else 0o022)
    return bool(by_others) and not found.st_mode & stat.S_ISVTX


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

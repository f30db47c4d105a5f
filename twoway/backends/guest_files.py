"""Safe access to the files that an untrusted guest left.

A symbolic link leads wherever the guest pointed it, and opening a pipe blocks. So no symbolic link
in the folder is followed, nothing but plain files is read, and as soon as the guest has ended
everything but plain files and folders is removed, and the rest moves into the run's folder.
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from twoway.contract.folders import remove_folder

# The most that is read of one file: the guest may have written without end.
_MOST_BYTES = 64 << 20
# Folders in folders that a guest may leave; none of a plan's paths has as many.
DEEPEST = 16
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@contextlib.contextmanager
def open_guest_folder(folder: Path, name: str) -> Iterator[int]:
    """Open a folder in a run's folder without following a link.

    Args:
        folder: the run's folder.
        name: path relative to `folder`; "." for `folder` itself.

    Yields: the opened folder's descriptor.
    Raises: OSError if a part of the path is missing or no folder.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in PurePosixPath(name).parts:
            inside = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened)
            os.close(opened)
            opened = inside
        yield opened
    finally:
        os.close(opened)


@contextlib.contextmanager
def open_guest_file(folder: Path, name: str) -> Iterator[BinaryIO]:
    """Open a plain file of a run's folder; never follow a link or block.

    Args:
        folder: the run's folder.
        name: path relative to `folder`.

    Raises: OSError if the file is missing or no plain file.
    """
    path = PurePosixPath(name)
    with open_guest_folder(folder, str(path.parent)) as parent:
        # O_NONBLOCK: opening a pipe does not wait for a writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(path.name, flags, dir_fd=parent), "rb") as file:  # noqa: PTH123 - no path
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(f"{folder / name}: not a plain file")
            yield file


def read_guest_file(folder: Path, name: str) -> str:
    """Read the text of a file as open_guest_file() opens it: its last 64 MiB if it is larger."""
    with open_guest_file(folder, name) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST_BYTES))
        return file.read(_MOST_BYTES).decode(errors="replace")


def remove_special_files(folder: Path) -> list[str]:
    """Remove everything that is neither a plain file nor a folder.

    No file keeps a bit that would give its reader the user's rights.

    Args:
        folder: a folder whose guest has ended.

    Returns: a phrase for each link, pipe, device, unreadable folder and folder nested too deep;
        none for sockets, which the guest's kernel makes.
    """
    found = []

    def unreadable(error: OSError) -> None:
        found.append(f"a folder that cannot be read ({error.strerror}: {error.filename})")

    for parent, folders, files, opened in os.fwalk(folder, onerror=unreadable):
        special = {}
        for name in sorted([*folders, *files]):
            mode = os.stat(name, dir_fd=opened, follow_symlinks=False).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                special[name] = _KINDS.get(stat.S_IFMT(mode))
            elif mode & 0o7000:
                os.chmod(name, mode & 0o777, dir_fd=opened)
        for name, kind in special.items():
            os.unlink(name, dir_fd=opened)
            if kind is not None:
                found.append(f"{kind} at {(Path(parent) / name).relative_to(folder)}")
        folders[:] = [name for name in folders if name not in special]
        if len(Path(parent).relative_to(folder).parts) == DEEPEST:
            found += [f"more than {DEEPEST} folders in each other" for _ in folders]
            for name in folders:
                remove_folder(Path(parent) / name)
            folders.clear()
    return found


def take_over(home: Path, folder: Path) -> list[str]:
    """Move what a guest left into the run's folder.

    Args:
        home: the guest's folder, without special files; it is removed.
        folder: the run's folder, or one in it.

    Returns: a phrase for each file that is in the run's folder already, and stays as it is there.
    """
    found = []
    for path in sorted(home.iterdir()):
        target = folder / path.name
        if path.is_dir() and target.is_dir():
            found += take_over(path, target)
        elif target.exists():
            found.append(f"another {path.name}")
        else:
            path.rename(target)
    shutil.rmtree(home)
    return found

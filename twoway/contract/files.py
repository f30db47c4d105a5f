"""The files of a run's folder, which are opened only here; and digests that identify files.

A guest, or the packer of an archive, wrote these files. A link may lead anywhere, opening a pipe
blocks, and an existing file may belong to somebody else. So links below the folder are never
followed, only plain files are read, and written files are always new.
"""

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import BinaryIO

# Limit for reading one file at once: a guest may have written without end.
MOST_BYTES = 64 << 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# O_NONBLOCK: opening a pipe does not wait for a writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# NFS locks only files that are open for writing.
_LOCK = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextlib.contextmanager
def open_run_folder(folder: Path, name: str) -> Iterator[int]:
    """Open a folder in a run's folder without following a link.

    Args:
        folder: the run's folder.
        name: path relative to `folder`; "." for `folder` itself.

    Yields: the opened folder's descriptor.
    Raises: OSError if a part of the path is missing, no folder, or leads out.
    """
    opened = os.open(folder, _FOLDER)
    try:
        for part in PurePosixPath(name).parts:
            if part in {"/", ".."}:
                raise OSError(f"{folder / name}: not below {folder}")
            inside = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=opened)
            os.close(opened)
            opened = inside
        yield opened
    finally:
        os.close(opened)


@contextlib.contextmanager
def open_run_file(folder: Path, name: str, *, new: bool = False) -> Iterator[BinaryIO]:
    """Open a plain file of a run's folder; never follow a link or block.

    Args:
        folder: the run's folder.
        name: path relative to `folder`.
        new: make the file, to be written; else it is read.

    Raises: OSError if the file is missing or no plain file; if a new one is there already.
    """
    path = PurePosixPath(name)
    with open_run_folder(folder, str(path.parent)) as parent:
        opened = os.open(path.name, _NEW if new else _READ, 0o666, dir_fd=parent)
        with open(opened, "wb" if new else "rb") as file:  # noqa: PTH123 - no path
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise OSError(f"{folder / name}: not a plain file")
            yield file


def open_lock(folder: Path, name: str, *, there: bool = False) -> BinaryIO:
    """Open a file that serves as a lock; follow no link below `folder`.

    The file's content stays: whoever may write to the folder may have put another file there.

    Args:
        folder: a folder.
        name: path relative to `folder`.
        there: make no file.

    Raises: OSError if it cannot be opened, or leads out.
    """
    path = PurePosixPath(name)
    with open_run_folder(folder, str(path.parent)) as parent:
        opened = os.open(path.name, _LOCK | (0 if there else os.O_CREAT), 0o666, dir_fd=parent)
        return open(opened, "rb")  # noqa: PTH123


def read_run_file(folder: Path, name: str, most_bytes: int = MOST_BYTES) -> str:
    """Read the text of a file opened by open_run_file(): only its end if it is larger."""
    with open_run_file(folder, name) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most_bytes))
        return file.read(most_bytes).decode(errors="replace")


def read_whole(folder: Path, name: str, most_bytes: int = MOST_BYTES) -> bytes:
    """Read a file opened by open_run_file().

    Raises: OSError as open_run_file(); ValueError if the file is larger.
    """
    with open_run_file(folder, name) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ValueError(f"larger than {most_bytes >> 20} MiB")
    return content


@cache
def sha256(path: Path) -> str:
    """Hash a file that does not change while this process lives."""
    return digest(path)


def digest(path: Path) -> str:
    """Hash a file as it is now."""
    with path.open("rb") as file:
        return digest_of(file)


def digest_of(file: BinaryIO) -> str:
    """Hash an opened file."""
    hashed = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type] # it asks for readinto
    return hashed.hexdigest()

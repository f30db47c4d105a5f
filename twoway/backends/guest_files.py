"""Moving the files that an untrusted guest left into the run's folder.

When the guest has ended, everything but plain files and folders is removed, and the rest is moved.
twoway/contract/files.py opens the files of a run.
"""

import errno
import os
import shutil
import stat
from pathlib import Path

from twoway.contract.folders import remove_folder

# Limit of nested folders that a guest may leave; no path of a plan has as many.
DEEPEST = 16
# Limit of the holes of all files that a guest leaves: bytes that occupy no disk, and that every
# reader gets as zeros. A guest writes none; only a program may leave a small sparse file.
MOST_HOLES = 64 << 20
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def remove_special_files(folder: Path) -> list[str]:
    """Remove all but plain files and folders from the folder of a guest that has ended.

    No file keeps a setuid or setgid bit.

    Returns: a phrase for each link, pipe, device, unreadable folder, folder nested too deep, and
        file with which the holes of all files are too large; none for sockets, which the guest's
        kernel makes.
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
            found += [f"more than {DEEPEST} nested folders" for _ in folders]
            for name in folders:
                remove_folder(Path(parent) / name)
            folders.clear()
    return found + _remove_sparse_files(folder)


def _remove_sparse_files(folder: Path) -> list[str]:
    """Remove each file with which the holes of all files are too large; return a phrase for it."""
    found, all_holes = [], 0
    for parent, folders, files, opened in os.fwalk(folder):
        folders.sort()
        for name in sorted(files):
            its = os.stat(name, dir_fd=opened, follow_symlinks=False)
            holes = _holes(name, opened) if its.st_size > its.st_blocks * 512 else 0
            if all_holes + holes <= MOST_HOLES:
                all_holes += holes
            else:
                os.unlink(name, dir_fd=opened)
                path = (Path(parent) / name).relative_to(folder)
                found.append(f"a sparse file of {its.st_size} bytes at {path}")
    return found


def _holes(name: str, folder: int) -> int:
    """Add up a plain file's bytes that occupy no disk; all of them if it cannot be read."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
    except PermissionError:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_size
    try:
        size, end, holes = os.fstat(file).st_size, 0, 0
        while end < size and holes <= MOST_HOLES:
            try:
                begin = os.lseek(file, end, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:  # a file system without such a search
                    return holes
                begin = size
            holes += begin - end
            end = os.lseek(file, begin, os.SEEK_HOLE) if begin < size else size
    finally:
        os.close(file)
    return holes


def take_over(home: Path, folder: Path) -> list[str]:
    """Move the files that a guest left into the run's folder.

    Args:
        home: the guest's folder, without special files; it is removed.
        folder: the run's folder, or one in it.

    Returns: a phrase for each file that the run's folder has already; that file is kept.
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

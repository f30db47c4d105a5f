"""Moving the files that an untrusted guest left into the run's folder.

When the guest has ended, everything but plain files and folders is removed, and the rest is moved.
twoway/contract/files.py opens the files of a run.
"""

import os
import shutil
import stat
from pathlib import Path

from twoway.contract.folders import remove_folder

# Limit of nested folders that a guest may leave; no path of a plan has as many.
DEEPEST = 16
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def remove_special_files(folder: Path) -> list[str]:
    """Remove everything that is neither a plain file nor a folder.

    No file keeps a setuid or setgid bit.

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
            found += [f"more than {DEEPEST} nested folders" for _ in folders]
            for name in folders:
                remove_folder(Path(parent) / name)
            folders.clear()
    return found


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

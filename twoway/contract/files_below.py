"""Find files that a specification names, if they may be read by all.

The content of such files becomes part of a run, which others may read and which is shared. The
specification may be a stranger's: a link out of its folder, a hidden file, and a file that others
may not read are refused.
"""

import stat
from collections.abc import Iterator
from pathlib import Path


def find_below(folder: Path, path: str) -> Path:
    """Find a file or folder by its path from a folder; follow links inside that folder alone.

    Raises: OSError if it is missing; ValueError with a phrase if it is elsewhere or private.
    """
    found = (folder / path).resolve(strict=True)
    if not found.is_relative_to(folder.resolve()):
        raise ValueError("is not below the experiment's folder")
    _refuse_private(folder.resolve(), found)
    return found


def _refuse_private(folder: Path, found: Path) -> None:
    """Raise ValueError with a phrase if a path below a folder is hidden, or closed to others."""
    here = folder
    for part in found.relative_to(folder).parts:
        here /= part
        if part.startswith("."):
            raise ValueError(f"{part} is hidden")
        mode = here.stat().st_mode
        if not mode & (stat.S_IXOTH if here.is_dir() else stat.S_IROTH):
            raise ValueError(f"{part}: others may not read it, but they may read the run")


def files_below(folder: Path, path: str, *patterns: str) -> Iterator[tuple[str, Path]]:
    """List a file, or the files of a folder that patterns match.

    Args:
        folder: the folder of the file that names the path; no link may lead out of it.
        path: the path from there.
        patterns: patterns for Path.glob.

    Yields: each file's path from the parent of `path`, and its place on the disk.
    Raises: OSError or ValueError with a phrase if a file is missing, elsewhere, private or no plain
        file.
    """
    start = find_below(folder, path)
    matching = {file for pattern in patterns for file in start.glob(pattern)}
    for file in sorted(matching) if start.is_dir() else [start]:
        resolved = file.resolve(strict=True)
        if not resolved.is_relative_to(start):
            raise ValueError(f"{file.name} leads out of it")
        for each in (file, resolved):
            _refuse_private(start, each)
        if file.is_file():
            yield str(file.relative_to(start.parent)), file
        elif not file.is_dir():
            raise ValueError(f"{file.name} is no plain file")

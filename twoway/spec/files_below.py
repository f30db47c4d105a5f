"""Find files that a specification names; a link out of their folder is refused."""

from collections.abc import Iterator
from pathlib import Path


def below(folder: Path, path: str) -> Path:
    """Find a file or folder by its path from a folder; follow links inside that folder alone.

    Raises: OSError if it is missing; ValueError with a phrase if it is elsewhere.
    """
    found = (folder / path).resolve(strict=True)
    if not found.is_relative_to(folder.resolve()):
        raise ValueError("is not below the experiment's folder")
    return found


def files_below(folder: Path, path: str, *patterns: str) -> Iterator[tuple[str, Path]]:
    """List a file, or the files of a folder that patterns match.

    Args:
        folder: the folder of the file that names the path; no link may lead out of it.
        path: the path from there.
        patterns: patterns for Path.glob.

    Yields: each file's path from the parent of `path`, and its place on the disk.
    Raises: OSError or ValueError with a phrase if a file is missing, elsewhere or no plain file.
    """
    start = below(folder, path)
    matching = {file for pattern in patterns for file in start.glob(pattern)}
    for file in sorted(matching) if start.is_dir() else [start]:
        if not file.resolve(strict=True).is_relative_to(start):
            raise ValueError(f"{file.name} leads out of it")
        if file.is_file():
            yield str(file.relative_to(start.parent)), file
        elif not file.is_dir():
            raise ValueError(f"{file.name} is no plain file")

"""Nested folders, deeper than any path can name."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEEP = 2100


@contextmanager
def nested(folder: Path, depth: int = DEEP) -> Iterator[Path]:
    """Make nested folders with a file and a link in the last; remove the rest afterwards.

    pytest cannot remove them.
    """
    folder.mkdir(parents=True)
    inside = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=inside)
        inner = os.open("d", os.O_RDONLY, dir_fd=inside)
        os.close(inside)
        inside = inner
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=inside))
    os.symlink("/etc", "link", dir_fd=inside)
    os.close(inside)
    try:
        yield folder
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)

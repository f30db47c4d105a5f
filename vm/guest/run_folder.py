"""Files of the run's folder, which the host reads."""

import errno
import os
from functools import cache
from pathlib import Path

RUN = Path("/mnt/run")


@cache
def make_folder(folder: Path) -> None:
    """Make a folder of the run, once."""
    folder.mkdir(exist_ok=True)


def write_file(path: Path | str, text: str) -> None:
    """Write a file in three system calls; Path.write_text, with its buffers, makes eleven."""
    content = text.encode()
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        if os.write(opened, content) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(opened)

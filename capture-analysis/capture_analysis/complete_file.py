"""Write a file that gets its name when complete; a failure leaves no file."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from capture_analysis.errors import AnalysisError


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """Provide the name of a new, empty file that replaces the target if no exception is raised.

    Its name cannot be guessed, and no link is followed to it.

    Raises: AnalysisError if the disk refuses.
    """
    aside = target.with_name(f".{uuid.uuid4().hex}.partial")
    try:
        aside.touch(exist_ok=False)
        yield aside
        aside.replace(target)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise AnalysisError(f"{target}: cannot be written: {why}") from error
    finally:
        with suppress(OSError):
            aside.unlink()

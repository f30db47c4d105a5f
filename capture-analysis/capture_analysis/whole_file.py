"""Write a file that gets its name when complete; a failure leaves no file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from capture_analysis.errors import AnalysisError


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """Provide the name of a file that replaces the target if no exception is raised.

    Raises: AnalysisError if the disk refuses.
    """
    aside = target.with_name(f".{target.name}.partial")
    try:
        yield aside
        aside.replace(target)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise AnalysisError(f"{target}: cannot be written: {why}") from error
    finally:
        with suppress(OSError):
            aside.unlink()

"""Analyse one capture at a time, each in a process with limits."""

import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path

from capture_analysis.errors import AnalysisError

_PIECE_BYTES = 1 << 20
_NAME_LENGTH = 100


class BusyError(AnalysisError):
    """Another capture is being analysed."""


@dataclass(frozen=True)
class Limits:
    """Limits of an analysis.

    Attributes:
        capture_bytes: size of an uploaded capture.
        memory_bytes: memory of the process, and size of each of its files.
        seconds: processor time; the wall time may be twice that.
    """

    capture_bytes: int = 1_000_000_000
    memory_bytes: int = 4_000_000_000
    seconds: int = 600


class Analyst:
    """Writes reports, one at a time.

    Args:
        limits: limits of each analysis.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._turn = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def report(self, name: str, capture: BufferedIOBase, size: int) -> bytes:
        """Return the page of a capture's report.

        Args:
            name: the capture's name, any text.
            capture: the capture's bytes, as a stream.
            size: number of bytes.

        Raises: BusyError if another capture is being analysed; AnalysisError, with a sentence for
            the page, if there is no report.
        """
        if size > self.limits.capture_bytes:
            raise AnalysisError(too_large(self.limits.capture_bytes))
        with self._alone(), tempfile.TemporaryDirectory(prefix="capture-analysis-") as folder:
            path = Path(folder) / plain_name(name)
            _save(capture, size, path)
            self._run(path)
            return (Path(folder) / "report" / "report.html").read_bytes()

    def stop(self) -> None:
        """End the analysis in progress."""
        if process := self._process:
            process.kill()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._turn.acquire(blocking=False):
            raise BusyError("another capture is being analysed: wait until it is done")
        try:
            yield
        finally:
            self._turn.release()

    def _run(self, path: Path) -> None:
        limits = self.limits
        # -P: no module is loaded from the folder with the capture.
        command = [sys.executable, "-P", "-m", "capture_analysis.serving.bounded"]
        command += [str(limits.memory_bytes), str(limits.seconds)]
        command += ["report", path.name, "--output", "report"]
        with subprocess.Popen(
            command,
            cwd=path.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as self._process:
            try:
                _, said = self._process.communicate(timeout=2 * limits.seconds)
            except subprocess.TimeoutExpired:
                self._process.kill()
                said = ""
        status, self._process = self._process.returncode, None
        if status == 2:
            raise AnalysisError(said.removeprefix("capture-analysis: ").strip())
        if status:
            raise AnalysisError(
                f"{path.name}: the analysis did not end: it may take "
                f"{limits.memory_bytes / 1e9:.1f} GB of memory and {limits.seconds} s"
            )


def too_large(most_bytes: int) -> str:
    """Make the error for a capture that is too large for the page."""
    return (
        f"captures are limited to {most_bytes / 1e6:g} MB here (--limit-mb); "
        "`capture-analysis report` on the command line takes any size"
    )


def plain_name(name: str) -> str:
    """Make a file's name from any text: no folder, no option, not hidden."""
    plain = re.sub(r"[^\w.+-]+", "_", name.rpartition("/")[2], flags=re.ASCII)
    return plain.lstrip(".-_")[:_NAME_LENGTH] or "capture"


def _save(capture: BufferedIOBase, size: int, path: Path) -> None:
    """Save a capture.

    Raises: AnalysisError if it ends early, or the disk refuses.
    """
    try:
        with path.open("wb") as file:
            while size and (piece := capture.read(min(size, _PIECE_BYTES))):
                size -= len(piece)
                file.write(piece)
    except OSError as error:
        raise AnalysisError(f"{path.name}: cannot be kept: {error.strerror or error}") from error
    if size:
        raise AnalysisError(f"{path.name}: {size} bytes did not arrive")

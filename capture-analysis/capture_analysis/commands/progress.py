"""Show the progress of reading captures on the terminal."""

import time
from pathlib import Path

from capture_analysis.printable import printable, terminal

# Seconds before the first line of progress: shorter work needs none.
_PATIENCE_S = 2.0
_EVERY_S = 0.5


class ProgressLine:
    """Writes to stderr now and then while captures are read.

    Set as `ByteSource.watch`.
    """

    def __init__(self) -> None:
        self._began = self._written = time.monotonic()
        # For each capture: the position, and time and position at the start of its present reading.
        self._seen: dict[Path, tuple[int, float, int]] = {}
        self._visible = False

    def __call__(self, path: Path, position: int) -> None:
        """Note that a capture was read up to a byte; update the line if it is due."""
        now = time.monotonic()
        last, since, origin = self._seen.get(path, (0, now, position))
        if position < last:  # the capture is read a second time
            since, origin = now, position
        self._seen[path] = position, since, origin
        if now - self._began < _PATIENCE_S or now - self._written < _EVERY_S:
            return
        self._written, self._visible = now, True
        size = max(path.stat().st_size, 1)
        done = max(position - origin, 1)
        left_s = (now - since) * (size - position) / done
        terminal().write(
            f"\r{printable(path.name)}: {position / size:.0%} of {size / 1e6:,.0f} MB read,"
            f" {left_s:.0f} s left\033[K"
        )
        terminal().flush()

    def clear(self) -> None:
        """Erase the line."""
        if self._visible:
            terminal().write("\r\033[K")

"""A line on the terminal that says how far the reading of captures has come."""

import sys
import time
from pathlib import Path

# What takes less time needs no line.
_PATIENCE_S = 2.0
_EVERY_S = 0.5


class ProgressLine:
    """Called as captures are read (`ByteSource.watch`); writes to stderr now and then."""

    def __init__(self) -> None:
        self._began = self._written = time.monotonic()
        # Of each capture: how far it is, and when and where this reading of it was first seen.
        self._seen: dict[Path, tuple[int, float, int]] = {}
        self._visible = False

    def __call__(self, path: Path, position: int) -> None:
        """A capture was read up to a byte of its file."""
        now = time.monotonic()
        last, since, origin = self._seen.get(path, (0, now, position))
        if position < last:  # read once more
            since, origin = now, position
        self._seen[path] = position, since, origin
        if now - self._began < _PATIENCE_S or now - self._written < _EVERY_S:
            return
        self._written, self._visible = now, True
        size = max(path.stat().st_size, 1)
        done = max(position - origin, 1)
        left_s = (now - since) * (size - position) / done
        sys.stderr.write(
            f"\r{path.name}: {position / size:.0%} of {size / 1e6:,.0f} MB read,"
            f" {left_s:.0f} s left\033[K"
        )
        sys.stderr.flush()

    def clear(self) -> None:
        """Leave no line behind."""
        if self._visible:
            sys.stderr.write("\r\033[K")

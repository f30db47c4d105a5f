"""Frames of a capture, and cursors that move over many of them at once."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from capture_analysis.columns import BoolArray, IntArray
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Column = NDArray[np.integer[Any]]


class Fate(IntEnum):
    """The fate of a frame; the names are those of Counts."""

    PACKETS = 0
    NOT_IP = 1
    NOT_TCP = 2
    LATER_FRAGMENTS = 3
    TOO_SHORT = 4
    MALFORMED = 5
    UNKNOWN_LINK_TYPE = 6
    NO_TIMESTAMP = 7
    BEYOND_2262 = 8
    ENCRYPTED = 9
    AGGREGATED = 10
    NO_INTERFACE = 11


@dataclass
class Frames:
    """Whole records of a capture; columns of shape (n,).

    Attributes:
        start: the offset of the frame's bytes.
        captured: the number of captured bytes.
        original: the original number of bytes in the record.
        time_ns: capture time, ns since the epoch.
        interface: number in the section, saturated at 65535.
        link_type: as in LINKTYPE_ numbers.
        fraction_beyond: True if the time has a fraction of a second or more.
        fate: Fate.PACKETS until the frame turns out to be no packet; changed in place.
    """

    start: IntArray
    captured: IntArray
    original: IntArray
    time_ns: IntArray
    interface: IntArray
    link_type: IntArray
    fraction_beyond: BoolArray
    fate: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def bytes(self) -> IntArray:
        """Return the size on the wire; some tools wrote an original length of 0."""
        return np.maximum(self.original, self.captured)

    @classmethod
    def none_yet(cls, count: int) -> "Frames":
        """Make a number of frames, to be filled in."""
        return cls(
            start=np.zeros(count, dtype=np.int64),
            captured=np.zeros(count, dtype=np.int64),
            original=np.zeros(count, dtype=np.int64),
            time_ns=np.zeros(count, dtype=np.int64),
            interface=np.zeros(count, dtype=np.int64),
            link_type=np.zeros(count, dtype=np.int64),
            fraction_beyond=np.zeros(count, dtype=np.bool_),
            fate=np.full(count, Fate.PACKETS, dtype=np.uint8),
        )


def headers_at(data: Bytes, at: IntArray, layout: np.dtype[np.void]) -> NDArray[np.void]:
    """Return the headers at these offsets, all inside data; shape (n,), of type `layout`."""
    size = layout.itemsize
    if len(data) < size:
        return np.zeros(0, dtype=layout)
    everywhere = np.ndarray((len(data) - size + 1,), f"V{size}", data, strides=(1,))
    return everywhere[at].view(layout)


@dataclass(frozen=True)
class Cursor:
    """Some frames, each with its own reading position.

    Attributes:
        data: the bytes of all frames.
        frames: all frames.
        place: the next reading position of each, shape (n,); shared by all cursors, changed in
            place.
        rows: the frames of the cursor, shape (k,), ascending.
    """

    data: Bytes
    frames: Frames
    place: IntArray
    rows: IntArray

    @classmethod
    def at_start(cls, data: Bytes, frames: Frames) -> "Cursor":
        """Return all frames without a fate so far, at their first byte."""
        rows = np.flatnonzero(frames.fate == Fate.PACKETS)
        return cls(data, frames, frames.start.copy(), rows)

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, which: BoolArray) -> "Cursor":
        """Select some of the frames."""
        return self if which.all() else Cursor(self.data, self.frames, self.place, self.rows[which])

    def left(self) -> "Cursor":
        """Return the frames that still have no fate."""
        return self.where(self.frames.fate[self.rows] == Fate.PACKETS)

    def keep(self, good: BoolArray, otherwise: Fate) -> "Cursor":
        """Keep the frames for which a condition holds; the others meet their fate."""
        if not good.all():
            self.frames.fate[self.rows[~good]] = otherwise
        return self.where(good)

    def need(self, count: int) -> "Cursor":
        """Keep the frames with enough captured bytes."""
        return self.keep(self.captured() >= count, Fate.TOO_SHORT)

    def captured(self) -> IntArray:
        """Return the captured bytes of each frame from its place on."""
        start, captured = self.frames.start[self.rows], self.frames.captured[self.rows]
        return start + captured - self.place[self.rows]

    def skip(self, count: IntArray | int) -> "Cursor":
        """Move on by some bytes."""
        self.place[self.rows] += count
        return self

    def read(self, layout: np.dtype[np.void], offset: int = 0) -> NDArray[np.void]:
        """Read the headers there, or some bytes on; they must have been captured (`need`)."""
        return headers_at(self.data, self.place[self.rows] + offset, layout)

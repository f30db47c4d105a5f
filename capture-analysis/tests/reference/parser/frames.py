"""Frames of a capture, and the reasons to leave one out."""

import struct
from dataclasses import dataclass


class LeftOutError(Exception):
    """A frame is no packet; its argument is the field of Counts that counts it."""


@dataclass
class Frame:
    """A captured frame.

    Attributes:
        octets: the captured bytes.
        original: the original number of bytes in the record.
        time_ns: capture time, ns since the epoch.
        interface: number in the section, saturated at 65535.
        link_type: as in LINKTYPE_ numbers.
        fraction_beyond: True if the time has a fraction of a second or more.
        left_out: the field of Counts that counts the frame, if the record already says so.
    """

    octets: bytes
    original: int = 0
    time_ns: int = 0
    interface: int = 0
    link_type: int = 0
    fraction_beyond: bool = False
    left_out: str | None = None

    @property
    def bytes(self) -> int:
        """Return the size on the wire; some tools wrote an original length of 0."""
        return max(self.original, len(self.octets))


class Cursor:
    """A reading position in a frame."""

    def __init__(self, octets: bytes) -> None:
        self.octets, self.at = octets, 0

    @property
    def left(self) -> bytes:
        """The captured bytes from here on."""
        return self.octets[self.at :]

    def peek(self, layout: str, offset: int = 0) -> tuple[int, ...]:
        """Read fields some bytes on, in network order, without a move."""
        if len(self.octets) - self.at < offset + struct.calcsize(">" + layout):
            raise LeftOutError("too_short")
        return struct.unpack_from(">" + layout, self.octets, self.at + offset)

    def take(self, layout: str) -> tuple[int, ...]:
        """Read fields, and move behind them."""
        found = self.peek(layout)
        self.at += struct.calcsize(">" + layout)
        return found

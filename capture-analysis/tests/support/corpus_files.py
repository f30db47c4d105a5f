"""Capture files of pcapng, made byte by byte from frames by the specification."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import hand_built
from hand_built import Frame


@dataclass(frozen=True)
class Interface:
    """A capturing interface of pcapng.

    Attributes:
        link_type: of its frames.
        resolution: as in if_tsresol, or None to leave it out (microseconds).
        offset_s: as in if_tsoffset; 0 leaves it out.
        snap_bytes: as in the block; 0 is no limit.
    """

    link_type: int = 1
    resolution: int | None = None
    offset_s: int = 0
    snap_bytes: int = 0

    def ticks(self, time_ns: int) -> int:
        """Return the file's value for a time."""
        time_ns -= self.offset_s * 1_000_000_000
        resolution = 6 if self.resolution is None else self.resolution
        per_second: int = 2 ** (resolution & 127) if resolution & 128 else 10**resolution
        return time_ns * per_second // 1_000_000_000


class Pcapng:
    """A file under construction, block by block."""

    def __init__(self) -> None:
        self.octets = b""
        self.order = "<"
        self.interfaces: list[Interface] = []

    def block(self, kind: int, body: bytes) -> "Pcapng":
        """Add a block."""
        return self._add(hand_built.block(kind, body, self.order))

    def _add(self, octets: bytes) -> "Pcapng":
        self.octets += octets
        return self

    def section(self, order: str = "<", *, length: int = -1) -> "Pcapng":
        """Add a section in a byte order; interfaces are numbered from 0 again."""
        self.order, self.interfaces = order, []
        options = self.option(1, b"a comment") + self.option(4, b"twoway")
        body = struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, length) + options + bytes(4)
        return self.block(0x0A0D0D0A, body)

    def interface(self, interface: Interface) -> "Pcapng":
        """Add an interface."""
        self.interfaces.append(interface)
        options = self.option(2, b"eth0")
        if interface.resolution is not None:
            options += self.option(9, bytes([interface.resolution]))
        if interface.offset_s:
            options += self.option(14, struct.pack(self.order + "q", interface.offset_s))
        head = struct.pack(self.order + "HHI", interface.link_type, 0, interface.snap_bytes)
        return self.block(1, head + options + bytes(4))

    def packet(self, frame: Frame, interface: int = 0, *, comment: bytes = b"") -> "Pcapng":
        """Add an Enhanced Packet Block."""
        ticks = self.interfaces[interface].ticks(frame.time_ns)
        options = self.option(1, comment) + bytes(4) if comment else b""
        place = ticks, interface, self.order
        return self._add(
            hand_built.enhanced(frame.octets, *place, size=frame.size, options=options)
        )

    def packets(self, frames: Sequence[Frame], interface: int = 0) -> "Pcapng":
        """Add an Enhanced Packet Block for each frame."""
        for frame in frames:
            self.packet(frame, interface)
        return self

    def obsolete_packet(self, frame: Frame, interface: int = 0) -> "Pcapng":
        """Add a Packet Block, as in the first drafts."""
        ticks = self.interfaces[interface].ticks(frame.time_ns)
        place = ticks, interface, self.order
        return self._add(hand_built.obsolete(frame.octets, *place, size=frame.size))

    def simple_packet(self, frame: Frame) -> "Pcapng":
        """Add a Simple Packet Block, which has no time."""
        return self._add(hand_built.simple(frame.octets, self.order, size=frame.size))

    def option(self, code: int, value: bytes) -> bytes:
        """Return an option's bytes."""
        head = struct.pack(self.order + "HH", code, len(value))
        return head + value + bytes(-len(value) % 4)


def pcapng(frames: Sequence[Frame], interface: Interface, order: str = "<") -> bytes:
    """Make a file of one section and one interface."""
    file = Pcapng().section(order).interface(interface)
    return file.packets(frames).octets

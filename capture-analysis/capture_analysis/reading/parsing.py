"""The contract of a parser: bytes of a capture in, columns of its TCP packets out.

There are two: `native` in C, and `fallback` in numpy for where there is no C compiler. What they
give is identical, column by column, count by count and word by word.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import FlowTable, Packets
from capture_analysis.errors import AnalysisError

# A record or block longer than this is damage, not data: no link has such frames.
LONGEST_RECORD_BYTES = 64 << 20
# How many bytes a parser needs to tell what a file is: a classic file header, the fixed part of
# a pcapng section header.
PCAP_HEADER_BYTES = 24
PCAPNG_HEADER_BYTES = 12
PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
# More VLAN tags and MPLS labels together, or more IPv6 extension headers, are no real packet.
MOST_TAGS = 8
MOST_EXTENSION_HEADERS = 8
# A capture with more connections is a port scan or hostile, and is read as far as this.
MOST_FLOWS = 1 << 22
# RFC 7323, 2.3: a greater shift count is taken as 14.
MOST_WINDOW_SCALE = 14
# Link types (LINKTYPE_ numbers) in which parsers find IP.
LINK_TYPES = frozenset((0, 1, 12, 14, 101, 108, 113, 228, 229, 276))

# What other files that people may take for captures start with.
_OTHER_FILES = {
    b"snoop\0": "a Solaris snoop capture",
    b"GMBU": "a Microsoft Network Monitor capture",
    b"PK\3\4": "a zip archive",
    b"BZh": "bzip2",
    b"\x04\x22\x4d\x18": "lz4",
    b"PAR1": "Parquet",
}


@dataclass
class Counts:
    """What became of the frames of a capture: each is a packet or counted under one reason.

    Of several reasons the first in order of layers counts.

    Attributes:
        frames: all of them; the sum of the next eight.
        packets: those in the columns.
        not_ip: neither IPv4 nor IPv6.
        not_tcp: IP, but not TCP.
        later_fragments: fragments but the first, which alone has TCP's header.
        too_short: the capture kept too little of the frame to tell.
        malformed: the frame contradicts itself.
        unknown_link_type: captured on a link that this package does not know.
        no_timestamp: in a block without one, or at a time beyond what 64 bits of ns hold.
        backward: packets captured earlier than the packet before them in the file.
        options_cut: packets whose TCP options the capture or a malformed option ends early.
        length_guessed: packets whose IP length is 0.
        other_blocks: pcapng blocks that hold no frame, section and interface, such as statistics.
    """

    frames: int = 0
    packets: int = 0
    not_ip: int = 0
    not_tcp: int = 0
    later_fragments: int = 0
    too_short: int = 0
    malformed: int = 0
    unknown_link_type: int = 0
    no_timestamp: int = 0
    backward: int = 0
    options_cut: int = 0
    length_guessed: int = 0
    other_blocks: int = 0


class Parser(Protocol):
    """Parses one capture, given piece by piece; what it finds does not depend on the pieces."""

    @property
    def counts(self) -> Counts:
        """What became of the frames so far."""

    @property
    def flows(self) -> FlowTable:
        """A copy of the connections seen so far."""

    @property
    def format(self) -> str:
        """Such as "pcap, little-endian, ns" or "pcapng, big-endian"; "" before the header."""

    @property
    def link_types(self) -> list[int]:
        """Those named so far (LINKTYPE_ numbers), ascending."""

    @property
    def broken(self) -> str | None:
        """A sentence once the chain of records cannot be followed any more."""

    def parse(self, data: NDArray[np.uint8], columns: Packets, row: int) -> tuple[int, int]:
        """Take whole records from the front of `data`.

        Until it holds no whole record, the columns are full, or the chain breaks.

        Args:
            data: what the file has after all that earlier calls took; at first at least
                PCAP_HEADER_BYTES (PCAPNG_HEADER_BYTES after PCAPNG_MAGIC).
            columns: to be written from `row` on.
            row: the first free row.

        Returns: how many bytes were taken, and the next free row.
        Raises: AnalysisError, without the file's name, if the file starts as no capture does.
        """


def not_a_capture(head: bytes) -> AnalysisError:
    """The error, without the file's name, of a parser whose file starts with these bytes."""
    guess = next((what for start, what in _OTHER_FILES.items() if head.startswith(start)), "")
    if not guess and head.isascii() and head.decode().isprintable():
        guess = "text"
    seems = f" ({guess}?)" if guess else ""
    return AnalysisError(f"neither pcap nor pcapng: it starts with {head[:4].hex(' ')}{seems}")

"""Parse a capture's bytes into columns of its TCP packets.

In C (clib/parser.c), by ctypes.
"""

import ctypes
import weakref
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from capture_analysis import clib
from capture_analysis.columns import COLUMN_TYPES, Packets
from capture_analysis.errors import AnalysisError
from capture_analysis.flow_table import FLOW, FlowTable
from capture_analysis.reading.datagrams import DATAGRAMS, Datagrams

# No link has frames of this size: a longer record or block is damage, not data.
LONGEST_RECORD_BYTES = 64 << 20
# Bytes that a parser needs to recognise a file: a classic file header, the fixed part of a pcapng
# section header.
PCAP_HEADER_BYTES = 24
PCAPNG_HEADER_BYTES = 12
PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
# Link types (LINKTYPE_ numbers) in which the parser finds IP.
LINK_TYPES = frozenset((0, 1, 9, 12, 14, 50, 101, 104, 105, 108, 113, 127, 228, 229, 258, 276))

_NO_CAPTURE = 1  # value of enum ca_status in clib/parser.h

# First bytes of other files that may be mistaken for captures.
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
    """Counts of frames: each is a packet or counted under one reason.

    If several reasons hold, that of the lowest layer counts.

    Attributes:
        frames: all frames; the sum of the next eleven.
        packets: TCP packets, or those of every protocol: the rows of the columns.
        not_ip: neither IPv4 nor IPv6.
        not_tcp: IP, but not TCP.
        later_fragments: fragments other than the first; only the first has TCP's header.
        too_short: the capture kept too little of the frame to identify it.
        malformed: the frame's headers contradict each other.
        unknown_link_type: frames of a link type that this package does not know.
        no_timestamp: frames in a block without a time.
        beyond_2262: frames at a time that 64 bits of ns cannot hold.
        encrypted: frames of an encrypted wireless link.
        aggregated: frames of a wireless link with several packets in one frame (A-MSDU).
        no_interface: frames of a pcapng file that describes their interface later or not at all.
        backward: packets captured earlier than the packet before them in the file.
        options_cut: packets whose TCP options the capture or a malformed option ends early.
        length_guessed: packets whose IP length is 0.
        length_beyond: packets whose IP length exceeds their frame.
        fraction_beyond: packets whose time has a fraction of a second or more.
        other_blocks: pcapng blocks other than frames, sections and interfaces, such as statistics.
        tunnels_ip, tunnels_gre, tunnels_erspan, tunnels_vxlan, tunnels_geneve, tunnels_gtp: packets
            that carry another in a tunnel, by the outermost; they also count as not_tcp unless
            tunnels are read.
        damages: places with damaged records after which reading continued.
        damaged_bytes: bytes skipped at these places, up to the next likely record or block.
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
    beyond_2262: int = 0
    encrypted: int = 0
    aggregated: int = 0
    no_interface: int = 0
    backward: int = 0
    options_cut: int = 0
    length_guessed: int = 0
    length_beyond: int = 0
    fraction_beyond: int = 0
    other_blocks: int = 0
    tunnels_ip: int = 0
    tunnels_gre: int = 0
    tunnels_erspan: int = 0
    tunnels_vxlan: int = 0
    tunnels_geneve: int = 0
    tunnels_gtp: int = 0
    damages: int = 0
    damaged_bytes: int = 0

    def tunnels(self) -> int:
        """Return the number of packets that carry another in a tunnel."""
        return sum(n for name, n in vars(self).items() if name.startswith("tunnels_"))


class _Counts(ctypes.Structure):
    """Laid out as struct ca_counts in clib/parser.h, in the order of Counts."""

    _fields_ = [(field.name, ctypes.c_uint64) for field in fields(Counts)]


class Parser:
    """Parse one capture, given in pieces of any size.

    Args:
        every_protocol: True to make rows of IP packets of every protocol, and of all fragments.
        inside: otherwise, True to make rows of TCP packets in tunnels.
    """

    def __init__(self, *, every_protocol: bool = False, inside: bool = False) -> None:
        self._library = clib.load()
        # The author of a capture cannot know the seed, and so cannot make connections collide.
        self._parser = self._library.ca_parser_new(clib.random_bits(), every_protocol, inside)
        if not self._parser:
            raise MemoryError
        weakref.finalize(self, self._library.ca_parser_free, self._parser)
        self._columns: Packets | None = None
        self._pointers = clib.Columns()

    @property
    def counts(self) -> Counts:
        """Counts of the frames so far."""
        counts = _Counts.from_address(self._library.ca_parser_counts(self._parser))
        return Counts(*(getattr(counts, field.name) for field in fields(Counts)))

    @property
    def connections(self) -> int:
        """The number of connections seen so far."""
        count = ctypes.c_size_t()
        self._library.ca_parser_flows(self._parser, ctypes.byref(count))
        return count.value

    @property
    def flows(self) -> FlowTable:
        """A copy of the connections seen so far."""
        count = ctypes.c_size_t()
        at = self._library.ca_parser_flows(self._parser, ctypes.byref(count))
        rows = np.empty(count.value, dtype=FLOW)
        ctypes.memmove(rows.ctypes.data, at, rows.nbytes)
        return FlowTable(rows)

    @property
    def datagrams(self) -> Datagrams:
        """A copy of the UDP flows seen so far; none if every protocol has rows."""
        count, directions, left_out = ctypes.c_size_t(), ctypes.c_void_p(), ctypes.c_uint64()
        numbers = (ctypes.byref(each) for each in (count, directions, left_out))
        at = self._library.ca_parser_datagrams(self._parser, *numbers)
        rows, each = np.empty(count.value, FLOW), np.empty((count.value, 2), DATAGRAMS)
        ctypes.memmove(rows.ctypes.data, at, rows.nbytes)
        if count.value:
            ctypes.memmove(each.ctypes.data, directions, each.nbytes)
        return Datagrams(FlowTable(rows), each, left_out.value)

    @property
    def format(self) -> str:
        """The format, such as "pcap, little-endian, ns"; "" before the header."""
        return str(self._library.ca_parser_format(self._parser).decode())

    @property
    def link_types(self) -> list[int]:
        """The link types named so far (LINKTYPE_ numbers), ascending."""
        count = self._library.ca_parser_link_types(self._parser, None, 0)
        types = (ctypes.c_uint32 * count)()
        self._library.ca_parser_link_types(self._parser, types, count)
        return list(types)

    @property
    def damage(self) -> str | None:
        """A sentence about the first damage after which reading continued; else None."""
        return str(self._library.ca_parser_damage(self._parser).decode()) or None

    @property
    def broken(self) -> str | None:
        """A sentence once the parser can read nothing more; else None."""
        return str(self._library.ca_parser_trouble(self._parser).decode()) or None

    def parse(
        self, data: NDArray[np.uint8], columns: Packets, row: int, *, last: bool = False
    ) -> tuple[int, int]:
        """Take whole records from the front of `data`.

        Parsing ends if `data` has no whole record, the columns are full, or nothing more can be
        read. Damaged records are skipped up to the next likely ones.

        Args:
            data: the file's bytes after those that earlier calls took; at first at least
                PCAP_HEADER_BYTES (PCAPNG_HEADER_BYTES after PCAPNG_MAGIC).
            columns: columns to write, from `row` on.
            row: the first free row.
            last: True if the file ends with these bytes.

        Returns: the number of bytes taken, and the next free row.
        Raises: AnalysisError, without the file's name, if the file does not begin like a capture.
        """
        if columns is not self._columns:
            self._pointers = _pointers(columns)
            self._columns = columns
        if data.dtype != np.uint8 or not data.flags.c_contiguous:
            raise ValueError("data must be contiguous bytes")
        taken, following = ctypes.c_size_t(), ctypes.c_size_t(row)
        status = self._library.ca_parser_parse(
            self._parser,
            data.ctypes.data,
            len(data),
            last,
            ctypes.byref(self._pointers),
            len(columns),
            taken,
            following,
        )
        if status == _NO_CAPTURE:
            raise not_a_capture(data[:PCAP_HEADER_BYTES].tobytes())
        return taken.value, following.value


def not_a_capture(head: bytes) -> AnalysisError:
    """Make the error for a file with these first bytes.

    It does not include the file's name.
    """
    guess = next((what for start, what in _OTHER_FILES.items() if head.startswith(start)), "")
    if not guess and head.isascii() and head.decode().isprintable():
        guess = "text"
    seems = f" ({guess}?)" if guess else ""
    return AnalysisError(f"neither pcap nor pcapng: it starts with {head[:4].hex(' ')}{seems}")


def _pointers(columns: Packets) -> clib.Columns:
    """Return the addresses of the columns, after checking their types.

    Raises: ValueError if a column is not of the library's type: the library would write elsewhere.
    """
    addresses = []
    for name, kind in COLUMN_TYPES.items():
        column = getattr(columns, name)
        if column.dtype != kind or column.shape != (len(columns),):
            raise ValueError(f"{name}: must be {kind} of shape ({len(columns)},)")
        if not (column.flags.c_contiguous and column.flags.writeable):
            raise ValueError(f"{name}: must be contiguous and writable")
        addresses.append(column.ctypes.data)
    return clib.Columns(*addresses)

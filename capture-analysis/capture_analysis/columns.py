"""Packets as columns.

Readers of captures write these columns; every other module gets packets in no other form.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntFlag
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

FLAG_FIN, FLAG_SYN, FLAG_RST, FLAG_PSH, FLAG_ACK = 0x01, 0x02, 0x04, 0x08, 0x10


class Mark(IntFlag):
    """Bits of `Packets.marks`."""

    TIMESTAMPS = 1
    """The packet has the time stamps option; otherwise ts_value and ts_echo are 0."""
    SACK = 2
    """The packet has a SACK block; otherwise sack_left and sack_right are 0."""
    MPTCP = 4
    """The packet has a Multipath TCP option, which is not followed."""
    OPTIONS_CUT = 8
    """The capture or a malformed option ends the options early; those before that count."""
    LENGTH_GUESSED = 16
    """IP's length is 0 (offload, jumbogram): the payload is derived from the frame's length."""
    FIRST_FRAGMENT = 32
    """More fragments follow; the payload counts this one's bytes."""
    LENGTH_BEYOND = 64
    """IP's length exceeds the frame's, because a tool cut frames and changed their sizes."""
    ECT_1 = 128
    """IP's field of ECN is 1 (ECT(1), as L4S sends), or with ECT_0 both are set: 3 (CE)."""
    ECT_0 = 256
    """IP's field of ECN is 2 (ECT(0)), or 3 (CE)."""
    UNFILLED = 512
    """The TCP checksum is 0 or that of the pseudo-header: left to the sender's network card."""
    FIRST_TTL = 1024
    """IP's TTL is 64, 128 or 255: no router passed the packet on."""
    ACCECN = 2048
    """The packet has an option with AccECN's counters of bytes (RFC 9768)."""
    CLIENT_HELLO = 4096
    """The payload begins with a record of TLS that has a ClientHello."""
    SERVER_HELLO = 8192
    """The payload begins with one that has a ServerHello."""
    ENCRYPTED = 16384
    """The payload begins with an encrypted record of TLS."""


# The columns of `Packets` and the types in which readers write them.
COLUMN_TYPES: dict[str, np.dtype[Any]] = {
    "time_ns": np.dtype("<i8"),
    "frame_bytes": np.dtype("<u4"),
    "payload_bytes": np.dtype("<u4"),
    "flow": np.dtype("<u4"),
    "seq": np.dtype("<u4"),
    "ack": np.dtype("<u4"),
    "ts_value": np.dtype("<u4"),
    "ts_echo": np.dtype("<u4"),
    "sack_left": np.dtype("<u4"),
    "sack_right": np.dtype("<u4"),
    "frame": np.dtype("<u4"),
    "window": np.dtype("<u2"),
    "ip_id": np.dtype("<u2"),
    "interface": np.dtype("<u2"),
    "flags": np.dtype("<u2"),
    "half": np.dtype("u1"),
    "marks": np.dtype("<u2"),
}


@dataclass(frozen=True)
class Packets:
    """TCP packets of one capture, in file order; columns of shape (n,).

    If every protocol is read (`read_capture`), a packet of another protocol than TCP has a payload,
    a hash of its first bytes as seq and ack, and 0 in the columns that only TCP has.

    Readers write the unsigned types of COLUMN_TYPES; `widened` makes them int64 for arithmetic.

    Attributes:
        time_ns: capture time, ns since the epoch.
        frame_bytes: size on the link, link header included, even if the capture kept less.
        payload_bytes: TCP payload, from the IP length (the capture may be truncated).
        flow: row of the connection in the capture's FlowTable.
        seq, ack: TCP sequence and acknowledgement numbers, 0..2^32-1.
        ts_value, ts_echo: the time stamps option, in ticks of the end that made each stamp.
        sack_left, sack_right: edges of the first SACK block.
        frame: number of the frame in the file, from 1, modulo 2^32.
        window: the header's value, not scaled.
        ip_id: IPv4 identification, 0 for IPv6.
        interface: number of the capturing interface in a pcapng section, else 0.
        flags: TCP flags, the nine of RFC 3168 and 3540 (FIN 1, SYN 2, RST 4, PSH 8, ACK 16).
        half: 0 for a packet of the connection's source, 1 for one of its destination.
        marks: bits of Mark.
    """

    time_ns: IntArray
    frame_bytes: IntArray
    payload_bytes: IntArray
    flow: IntArray
    seq: IntArray
    ack: IntArray
    ts_value: IntArray
    ts_echo: IntArray
    sack_left: IntArray
    sack_right: IntArray
    frame: IntArray
    window: IntArray
    ip_id: IntArray
    interface: IntArray
    flags: IntArray
    half: IntArray
    marks: IntArray

    def __len__(self) -> int:
        return len(self.time_ns)

    def where(self, rows: BoolArray | IntArray | slice) -> "Packets":
        """Select packets by a mask, by row numbers or by a slice.

        A slice copies nothing.
        """
        if not isinstance(rows, slice) and rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        return self._each(lambda column: _take_rows(column, rows))

    def data(self) -> "Packets":
        """Select the packets that carry payload, as `later` does."""
        rows = np.flatnonzero(self.payload_bytes)
        return self.compute_later(lambda column: column[rows])

    def compute_later(self, change: Callable[[IntArray], IntArray]) -> "Packets":
        """Compute other columns from these, each when it is first read.

        These columns must not be overwritten before.
        """
        return Lazy.from_function(
            lambda name: change(self.key() if name == "keys" else getattr(self, name))
        )

    def widen(self) -> "Packets":
        """Convert columns to int64, so that differences do not wrap."""
        return self._each(lambda column: column.astype(np.int64))

    def _each(self, change: Callable[[IntArray], IntArray]) -> "Packets":
        return type(self)(*(change(getattr(self, f.name)) for f in fields(self)))

    def renumber(self, flow: IntArray, turned: IntArray) -> "Packets":
        """Renumber connections to those of a common table, as `CommonFlows` maps them."""
        return replace(
            self,
            flow=_narrow(flow.astype(np.uint32))[self.flow],
            half=self.half ^ turned.astype(np.uint8)[self.flow],
        )

    @property
    def directions(self) -> IntArray:
        """Each packet's direction: 2 * flow, and 1 more if its connection's destination sent it."""
        return 2 * self.flow.astype(np.int64) + self.half

    def key(self) -> IntArray:
        """Hash each packet to a number that is equal all along its path.

        The hash covers the connection (numbered alike in all captures: `CommonFlows`), IP
        identification, sequence and acknowledgement numbers, length, window, time stamps and SACK.
        Linux counts the identification per connection, so retransmissions differ.

        Returns: shape (n,), int64.
        """
        return _of_connections(self.header_key(), self)

    def header_key(self) -> IntArray:
        """Hash what a key covers besides the connection; shape (n,), int64."""
        keys = np.zeros(len(self), dtype=np.uint64)
        for high, low in _KEY:
            _mix(keys, getattr(self, high), getattr(self, low))
        return keys.view(np.int64)


# Pairs of columns that a key covers.
_KEY = (
    ("seq", "ack"),
    ("ip_id", "payload_bytes"),
    ("ts_value", "ts_echo"),
    ("sack_left", "sack_right"),
    ("window", "flags"),
)
# Number of packets that are hashed at a time: a core's cache holds their temporary arrays.
_BLOCK = 1 << 14


def _mix(keys: NDArray[np.uint64], high: IntArray, low: IntArray) -> None:
    """Mix two numbers of at most 32 bits into each key."""
    for first in range(0, len(keys), _BLOCK):
        rows = slice(first, first + _BLOCK)
        mixed = keys[rows]
        mixed ^= (high[rows].astype(np.uint64) << np.uint64(32)) | low[rows].astype(np.uint64)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)


def _of_connections(header_key: IntArray, packets: Packets) -> IntArray:
    keys = header_key.view(np.uint64).copy()
    _mix(keys, packets.flow, packets.directions)
    return keys.view(np.int64)


@dataclass(frozen=True)
class Keyed(Packets):
    """Packets with stored hashes of their headers; columns that only keys need can be left out.

    Attributes:
        hashes: shape (n,), see `header_key`.
    """

    hashes: IntArray

    @classmethod
    def from_packets(cls, packets: Packets, left_out: Iterable[str]) -> "Keyed":
        """Hash the headers of packets; columns that are left out are 0 and take no memory."""
        none = np.broadcast_to(np.uint8(0), (len(packets),))
        columns = {name: getattr(packets, name) for name in _COLUMNS}
        return cls(**columns | dict.fromkeys(left_out, none), hashes=packets.header_key())

    def header_key(self) -> IntArray:
        """Return the stored hashes."""
        return self.hashes


class Lazy(Packets):
    """Packets whose columns are computed when they are first read."""

    keys: IntArray
    _column: Callable[[str], IntArray]

    @classmethod
    def from_function(cls, column: Callable[[str], IntArray]) -> "Lazy":
        """Make packets from a function that computes a column, or the "keys", by name."""
        made = cls.__new__(cls)
        vars(made).update(_column=column)
        return made

    def __getattr__(self, name: str) -> IntArray:
        if name not in COLUMN_TYPES and name != "keys":
            raise AttributeError(name)
        column = vars(self)[name] = self._column(name)
        return column

    def key(self) -> IntArray:
        """Return the keys, computed when they are first read."""
        return self.keys

    def _each(self, change: Callable[[IntArray], IntArray]) -> Packets:
        return self.compute_later(change)


def _take_rows(column: IntArray, rows: BoolArray | IntArray | slice) -> IntArray:
    """Select values of a column; one of a single value stays without memory."""
    if isinstance(rows, slice) or column.strides != (0,):
        return column[rows]
    return np.broadcast_to(column[:1], rows.shape)


def _compact(column: IntArray) -> IntArray:
    if not len(column) or (column != column[0]).any():
        return column
    return np.broadcast_to(column[:1].copy(), column.shape)


def _narrow(column: IntArray) -> IntArray:
    """Copy a column, an unsigned one to the smallest type that holds its values."""
    signed = column.dtype.kind == "i"
    return column.astype(column.dtype if signed else np.min_scalar_type(column.max(initial=0)))


_COLUMNS = tuple(f.name for f in fields(Packets))


def empty_columns(rows: int) -> Packets:
    """Allocate columns of `rows` packets for a reader, not initialised."""
    return Packets(*(np.empty(rows, COLUMN_TYPES[f.name]) for f in fields(Packets)))


def concatenate(parts: Sequence[Packets]) -> Packets:
    """Append the packets of several parts, one part after the other."""
    return Packets(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Packets)))


def compact_chunks(
    chunks: Iterable[Packets], change: Callable[[Packets], Packets] = lambda packets: packets
) -> Packets:
    """Append the packets of chunks that may be overwritten, in as little memory as they take.

    A column is stored in the smallest type that holds its values. One with a single value, such as
    the stamps of packets without time stamps, takes no memory and cannot be written to.

    Args:
        chunks: the packets.
        change: a function that changes each chunk before.
    """
    none = change(empty_columns(0))
    parts: dict[str, list[IntArray]] = {f.name: [] for f in fields(none)}
    for chunk in chain([none], map(change, chunks)):
        for name, narrow in parts.items():
            narrow.append(_narrow(getattr(chunk, name)))
    return type(none)(*(_compact(np.concatenate(parts.pop(name))) for name in list(parts)))


def merge(parts: Sequence[Packets]) -> Packets:
    """Merge captures in time order; equal times keep the order of the parts.

    A single part in time order is returned as it is.
    """
    if len(parts) == 1 and (parts[0].time_ns[1:] >= parts[0].time_ns[:-1]).all():
        return parts[0]
    order = np.argsort(np.concatenate([part.time_ns for part in parts]), kind="stable")
    columns = ([getattr(part, f.name) for part in parts] for f in fields(parts[0]))
    return type(parts[0])(*(np.concatenate(each)[order] for each in columns))

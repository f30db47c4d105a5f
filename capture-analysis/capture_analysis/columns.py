"""Packets as columns, and the connections that they belong to.

Readers of captures write these columns; every other module gets packets in no other form.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntFlag
from functools import cached_property
from ipaddress import IPv6Address, ip_address
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


class Seen(IntFlag):
    """Bits of `seen` in FLOW; those of half 1 are HALF and SYN shifted left by one."""

    HALF = 1
    """The half has a packet."""
    SYN = 4
    """A SYN of the half was seen: its base is then the ISN."""
    IN_OTHER_VLANS = 16
    """Some packets are in other VLANs than `vlans`, or in none."""


# One connection. Source: the end that sent its first captured packet. Half 0 is the source's
# packets, half 1 the destination's. Laid out as struct ca_flow in clib/flows.h.
FLOW = np.dtype(
    [
        ("source", "u1", 16),  # IPv4 as ::ffff:a.b.c.d
        ("destination", "u1", 16),
        ("first_ns", "<i8"),
        ("base", "<u4", 2),  # first sequence number seen in each half
        ("source_port", "<u2"),
        ("destination_port", "<u2"),
        ("mss", "<u2", 2),  # announced in each half's SYN, 0 if none was seen
        ("window_scale", "u1", 2),  # announced in each half's SYN, NO_SCALE if none was
        ("version", "u1"),  # 4 or 6
        ("protocol", "u1"),  # TCP, unless every protocol is read
        (
            "vlans",
            "u1",
            3,
        ),  # the two innermost VLANs, 12 bits each, the inner in the lower; 0: none
        ("seen", "u1"),  # bits of Seen
    ],
)
NO_SCALE = 255
_IPV6 = 6  # value of version
# IP's numbers of protocols.
TCP, UDP = 6, 17

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
    "marks": np.dtype("u1"),
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
        return self._each(lambda column: _taken(column, rows))

    def data(self) -> "Packets":
        """Select the packets that carry payload, as `later` does."""
        rows = np.flatnonzero(self.payload_bytes)
        return self.later(lambda column: column[rows])

    def later(self, change: Callable[[IntArray], IntArray]) -> "Packets":
        """Compute other columns from these, each when it is first read.

        These columns must not be overwritten before.
        """
        return Lazy.of(lambda name: change(self.key() if name == "keys" else getattr(self, name)))

    def widened(self) -> "Packets":
        """Convert columns to int64, so that differences do not wrap."""
        return self._each(lambda column: column.astype(np.int64))

    def _each(self, change: Callable[[IntArray], IntArray]) -> "Packets":
        return type(self)(*(change(getattr(self, f.name)) for f in fields(self)))

    def renumbered(self, flow: IntArray, turned: IntArray) -> "Packets":
        """Renumber connections to those of a common table, as `CommonFlows` maps them."""
        return replace(
            self,
            flow=_narrow(flow.astype(np.uint32))[self.flow],
            half=self.half ^ turned.astype(np.uint8)[self.flow],
        )

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
    _mix(keys, packets.flow, packets.half)
    return keys.view(np.int64)


@dataclass(frozen=True)
class Keyed(Packets):
    """Packets with stored hashes of their headers; columns that only keys need can be left out.

    Attributes:
        hashes: shape (n,), see `header_key`.
    """

    hashes: IntArray

    @classmethod
    def of(cls, packets: Packets, left_out: Iterable[str]) -> "Keyed":
        """Hash the headers of packets; columns that are left out are 0 and take no memory."""
        none = np.broadcast_to(np.uint8(0), (len(packets),))
        columns = {name: getattr(packets, name) for name in _COLUMNS}
        return cls(**columns | dict.fromkeys(left_out, none), hashes=packets.header_key())

    def key(self) -> IntArray:
        """Compute the packets' keys from the stored hashes."""
        return _of_connections(self.hashes, self)


class Lazy(Packets):
    """Packets whose columns are computed when they are first read."""

    keys: IntArray
    _column: Callable[[str], IntArray]

    @classmethod
    def of(cls, column: Callable[[str], IntArray]) -> "Lazy":
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
        return self.later(change)


def _taken(column: IntArray, rows: BoolArray | IntArray | slice) -> IntArray:
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


def compacted(
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


@dataclass(frozen=True)
class FlowTable:
    """The connections of a capture, numbered as they first appear.

    A SYN whose sequence number is not its half's base starts a new connection between the same
    addresses and ports; Wireshark counts streams by that rule, too. Connections in different VLANs
    are different ones, unless their numbers show that they are one (clib/flows.c).

    Attributes:
        rows: shape (n,), of type FLOW.
    """

    rows: NDArray[np.void]

    def __len__(self) -> int:
        return len(self.rows)

    def source(self, flow: int) -> tuple[str, int]:
        """Return address and port of the end that sent the first packet seen."""
        row = self.rows[flow]
        return _address(row["source"], int(row["version"])), int(row["source_port"])

    def destination(self, flow: int) -> tuple[str, int]:
        """Return address and port of the other end than `source`."""
        row = self.rows[flow]
        return _address(row["destination"], int(row["version"])), int(row["destination_port"])

    def name(self, flow: int) -> str:
        """Format both ends as text, the source first; IPv6 addresses in brackets."""
        return " > ".join(
            f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
            for address, port in (self.source(flow), self.destination(flow))
        )

    def vlans(self, flow: int) -> list[int]:
        """Return the VLANs of a connection, the outer first; at most the two innermost."""
        packed = int.from_bytes(self.rows[flow]["vlans"].tobytes(), "little")
        return [vlan for vlan in (packed >> 12, packed & 0xFFF) if vlan]

    def label(self, flow: int, half: int = 0) -> str:
        """Format both ends, the sender of a half first, and the VLANs if there are any."""
        ends = self.name(flow).split(" > ")[:: -1 if half else 1]
        vlans = ".".join(map(str, self.vlans(flow)))
        return " > ".join(ends) + (f" (VLAN {vlans})" if vlans else "")

    def halves_seen(self) -> BoolArray:
        """Tell which halves have packets, shape (n, 2)."""
        return self._seen(Seen.HALF)

    def syns_seen(self) -> BoolArray:
        """Mark the directions in which a SYN was seen, shape (n, 2)."""
        return self._seen(Seen.SYN)

    def _seen(self, what: Seen) -> BoolArray:
        bits = np.array([what, what << 1], dtype=np.uint8)
        return (self.rows["seen"][:, np.newaxis] & bits) > 0

    def wireshark_filter(self, flow: int, sender: int | None = None) -> str:
        """Write the display filter by which Wireshark and tshark show a connection.

        With a sender, 0 for the source and 1 for the destination, it shows that one's packets.

        VLANs are included only if a connection in another VLAN has the same ends: tags may be in
        one direction only.
        """
        row = self.rows[flow]
        field = "ipv6" if row["version"] == _IPV6 else "ip"
        ends = self.source(flow), self.destination(flow)
        source, destination = ends[::-1] if sender else ends
        addresses, ports = ("addr", "addr"), ("port", "port")
        if sender is not None:
            addresses, ports = ("src", "dst"), ("srcport", "dstport")
        terms = [
            f"{field}.{addresses[0]} == {source[0]}",
            f"{field}.{addresses[1]} == {destination[0]}",
        ]
        terms += [f"tcp.{ports[0]} == {source[1]}", f"tcp.{ports[1]} == {destination[1]}"]
        namesakes = [other for other, _ in self.find(*ends, int(row["protocol"]))]
        if (self.rows["vlans"][namesakes] != row["vlans"]).any():
            # To Wireshark, 802.1Q's tags are another protocol than 802.1ad's.
            terms += [
                f"(vlan.id == {vlan} || ieee8021ad.id == {vlan})" for vlan in self.vlans(flow)
            ] or ["!vlan && !ieee8021ad"]
        return " && ".join(terms)

    def find(
        self, sender: tuple[str, int], receiver: tuple[str, int], protocol: int = TCP
    ) -> list[tuple[int, int]]:
        """Find the connections between two ends, or the flows of a protocol other than TCP.

        Returns: pairs (flow, half), half being 0 if `sender` is the connection's source, else 1.
        """
        there, here = ((_packed(address), port) for address, port in (sender, receiver))
        kind = protocol, ":" in sender[0]
        return sorted(
            (flow, half)
            for half, ends in enumerate(((there, here), (here, there)))
            for flow in self._by_ends.get((*ends, kind), ())
        )

    @cached_property
    def _by_ends(self) -> dict[tuple[Any, ...], list[int]]:
        """Numbers of flows by source, destination, and pairs of protocol and whether it is IPv6."""
        rows, found = self.rows, defaultdict[tuple[Any, ...], list[int]](list)
        sources = zip(map(bytes, rows["source"]), rows["source_port"].tolist(), strict=True)
        goals = zip(map(bytes, rows["destination"]), rows["destination_port"].tolist(), strict=True)
        kinds = zip(rows["protocol"].tolist(), (rows["version"] == _IPV6).tolist(), strict=True)
        for flow, key in enumerate(zip(sources, goals, kinds, strict=True)):
            found[key].append(flow)
        return found


@dataclass
class _Known:
    """A connection of the common table, with the ISNs that were seen."""

    index: int
    source: tuple[bytes, int]
    vlans: bytes
    isn: dict[tuple[bytes, int], int]

    def agrees(self, isn: dict[tuple[bytes, int], int]) -> bool | None:
        """Compare the ISNs that both have; return None if there are none to compare."""
        both = self.isn.keys() & isn.keys()
        return all(self.isn[end] == isn[end] for end in both) if both else None


class CommonFlows:
    """Assigns common numbers to the connections of several captures, one capture after another.

    Connections of two captures are the same if their ends are equal and, if ports were used again,
    their SYNs. If no SYN can be compared, their VLANs, which may differ between taps, and then the
    order of appearance decide.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], list[_Known]] = {}
        self._rows: list[np.void] = []

    @property
    def table(self) -> FlowTable:
        """The common table: each connection's row from the first capture that has it."""
        return FlowTable(np.array(self._rows, dtype=FLOW))

    def add(self, table: FlowTable) -> tuple[IntArray, IntArray]:
        """Assign numbers to the connections of the next capture.

        Returns: two columns of the length of its table: the common number of a connection, and 1
            where source and destination are exchanged in the common table, else 0.
        """
        flow = np.zeros(len(table), dtype=np.int64)
        turned = np.zeros(len(table), dtype=np.int64)
        taken: set[int] = set()
        syns = table.syns_seen()
        for at, row in enumerate(table.rows):
            ends = [
                (row[end].tobytes(), int(row[f"{end}_port"])) for end in ("source", "destination")
            ]
            isn = {ends[half]: int(row["base"][half]) for half in (0, 1) if syns[at, half]}
            kind = int(row["version"]), int(row["protocol"])
            namesakes = self._known.setdefault((*kind, *sorted(ends)), [])
            free = [each for each in namesakes if each.index not in taken]
            same = [each for each in free if each.agrees(isn)]
            vlans = row["vlans"].tobytes()
            unknown = [each for each in free if each.agrees(isn) is None]
            same += [each for each in unknown if each.vlans == vlans] + unknown
            if not same:
                same = [_Known(len(self._rows), ends[0], vlans, {})]
                namesakes += same
                self._rows.append(row)
            taken.add(same[0].index)
            same[0].isn |= isn
            flow[at] = same[0].index
            turned[at] = same[0].source != ends[0]
        return flow, turned


def _packed(address: str) -> bytes:
    ip = ip_address(address)
    return ip.packed if isinstance(ip, IPv6Address) else bytes(10) + b"\xff\xff" + ip.packed


def _address(packed: NDArray[np.uint8], version: int) -> str:
    """Format an address; an IPv6 address that maps IPv4 is written ::ffff:a.b.c.d."""
    ip = IPv6Address(packed.tobytes())
    mapped = ip.ipv4_mapped
    if not mapped:
        return str(ip)
    return f"::ffff:{mapped}" if version == _IPV6 else str(mapped)

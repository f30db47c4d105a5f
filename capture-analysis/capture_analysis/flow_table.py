"""The connections of a capture."""

from collections import defaultdict
from dataclasses import dataclass
from enum import IntFlag
from functools import cached_property
from ipaddress import IPv6Address, ip_address
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import BoolArray, IntArray


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
    ]
)
NO_SCALE = 255
# The options of the SYN end too early to tell whether it announced a scale.
SCALE_CUT = 254
_IPV6 = 6  # value of version
# IP's numbers of protocols.
TCP, UDP = 6, 17


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

    def ends_seen(self) -> BoolArray:
        """Tell which halves have packets, shape (n, 2)."""
        return self._has_bit(Seen.HALF)

    def syns_seen(self) -> BoolArray:
        """Mark the directions in which a SYN was seen, shape (n, 2)."""
        return self._has_bit(Seen.SYN)

    def nat_faces(self) -> list[tuple[int, int]]:
        """Return pairs of connections that show the same packets, on both sides of a NAT.

        Both ISNs are the same in these two alone, and one end's address or port. A NAT that changes
        ISNs, and a capture without the handshake, show none; nor do ISNs of 0, a simulator's.
        """
        known = np.flatnonzero(self.syns_seen().all(axis=1))
        isns = self.rows["base"][known].astype(np.uint64) @ np.array([1 << 32, 1], dtype=np.uint64)
        known, isns = known[(order := np.argsort(isns, kind="stable"))], isns[order]
        _, first, times = np.unique(isns, return_index=True, return_counts=True)
        alike = first[(times == 2) & (isns[first] != 0)]
        pairs = zip(known[alike].tolist(), known[alike + 1].tolist(), strict=True)
        ends = (self.source, self.destination)
        return [pair for pair in pairs if sum(len({*map(end, pair)}) for end in ends) == 3]

    def _has_bit(self, what: Seen) -> BoolArray:
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
        kind = "udp" if row["protocol"] == UDP else "tcp"
        terms += [f"{kind}.{ports[0]} == {source[1]}", f"{kind}.{ports[1]} == {destination[1]}"]
        namesakes = self.find(*ends, int(row["protocol"])) if self._in_several_vlans else ()
        if any((self.rows["vlans"][other] != row["vlans"]).any() for other, _ in namesakes):
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
    def _in_several_vlans(self) -> bool:
        vlans = self.rows["vlans"]
        return bool((vlans != vlans[:1]).any())

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


def addresses(flows: FlowTable) -> tuple[list[str], IntArray]:
    """List the addresses of a table, and the number of each connection's two; (n, 2)."""
    rows = flows.rows
    packed = np.empty((len(rows), 2, 17), dtype=np.uint8)
    packed[:, 0, :16], packed[:, 1, :16] = rows["source"], rows["destination"]
    packed[:, :, 16] = rows["version"][:, np.newaxis]
    different, number = np.unique(packed.view("V17").ravel(), return_inverse=True)
    each = np.frombuffer(different.tobytes(), np.uint8).reshape(-1, 17)
    return [_address(row[:16], int(row[16])) for row in each], number.reshape(-1, 2)


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

"""Connections that a router's NAT changes on their way, known again in the captures behind it.

NAT changes addresses, ports and checksums, and keeps the rest of each header. A connection whose
first packet came before in another one, of the same protocol and in other captures, is that one
changed. Of several such the one with the most equal ends is taken.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from ipaddress import IPv6Address, ip_address

import numpy as np
from capture_analysis.columns import IntArray, Packets
from capture_analysis.flow_table import FlowTable
from numpy.typing import NDArray

_ENDS = ("source", "destination")


def without_checksums(packets: Packets) -> Packets:
    """Blank what differs in packets other than TCP: a hash of their ports and checksums."""
    tcp = packets.flags != 0
    return replace(packets, seq=packets.seq * tcp, ack=packets.ack * tcp)


def join_connections(
    captures: Sequence[Packets],
    directions: Iterable[NDArray[np.uint32]],
    table: FlowTable,
    hosts: Iterable[str],
) -> tuple[IntArray, IntArray, FlowTable]:
    """Give each connection one number before and behind NAT.

    Args:
        captures: packets of each capture, their connections numbered as in the table.
        directions: the numbers of their directions (`numbers_of`).
        table: the connections.
        hosts: addresses of hosts, which the ends of the joint connections have.

    Returns: two columns of the table's length, see `Packets.renumbered`, and the table.
    """
    direction, time_ns, hashed = (
        np.concatenate([np.zeros(0, dtype=np.int64), *columns])
        for columns in (
            directions,
            (c.time_ns for c in captures),
            (c.header_key() for c in captures),
        )
    )
    direction = direction.astype(np.int64)
    by_time, by_hash = (np.argsort(column, kind="stable") for column in (time_ns, hashed))
    places = [set(np.unique(each.flow).tolist()) for each in captures]
    seen = [{at for at, flows in enumerate(places) if flow in flows} for flow in range(len(table))]
    number, turned = np.arange(len(table)), np.zeros(len(table), dtype=np.int64)
    kinds = table.rows[["version", "protocol"]]
    rows, alike = table.rows.copy(), hashed[by_hash]
    ends = {_packed(address) for address in hosts}
    _, first = np.unique(direction[by_time] // 2, return_index=True)
    for row in by_time[np.sort(first)].tolist():
        flow, own = divmod(int(direction[row]), 2)
        begin = np.searchsorted(alike, hashed[row], side="left")
        same = by_hash[begin : np.searchsorted(alike, hashed[row], side="right")]
        best: tuple[int, int, int] | None = None
        for other in np.unique(direction[same[time_ns[same] <= time_ns[row]]]).tolist():
            into, turn = int(number[other // 2]), int(turned[other // 2]) ^ other % 2 ^ own
            fits = not seen[into] & seen[flow] and kinds[into] == kinds[flow]
            if into != flow and fits:
                best = max(best or (-1, 0, 0), (_equal(rows, into, flow, turn), into, turn))
        if best:
            _, into, turn = best
            number[flow], turned[flow] = into, turn
            seen[into] |= seen[flow]
            _take_ends(rows, into, flow, turn, ends)
            for end in _ENDS:  # a number without packets has no ends
                rows[end][flow] = 0
    return number, turned, FlowTable(rows)


def _packed(address: str) -> bytes:
    """Write an address as a table of connections has it."""
    known = ip_address(address)
    return (known if known.version == 6 else IPv6Address(f"::ffff:{known}")).packed


def _equal(rows: NDArray[np.void], into: int, flow: int, turn: int) -> int:
    """Count equal addresses and ports of two connections."""
    pairs = zip(_ENDS, _ENDS[::-1] if turn else _ENDS, strict=True)
    return sum(
        int((rows[into][one + part] == rows[flow][other + part]).all())
        for one, other in pairs
        for part in ("", "_port")
    )


def _take_ends(rows: NDArray[np.void], into: int, flow: int, turn: int, hosts: set[bytes]) -> None:
    """Give a connection the ends of its other side that are hosts, where its own are not."""
    for one, other in zip(_ENDS, _ENDS[::-1] if turn else _ENDS, strict=True):
        if rows[into][one].tobytes() not in hosts and rows[flow][other].tobytes() in hosts:
            for part in ("", "_port"):
                rows[one + part][into] = rows[other + part][flow]

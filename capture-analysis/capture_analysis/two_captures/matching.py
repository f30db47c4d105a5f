"""Find the common packets of two captures, window by window.

The k-th packet of a key in one capture is the k-th in the other.
"""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from capture_analysis import clib
from capture_analysis.columns import IntArray, Packets
from capture_analysis.flow_table import FlowTable
from capture_analysis.tracking import Kind
from capture_analysis.two_captures.match_rows import (
    ROW,
    Rows,
    append_parts,
    rows_of,
    select_rows,
    take,
)
from capture_analysis.two_captures.packet_key import PacketKeys

_FAILED = ctypes.c_size_t(-1).value


def join(a_rows: Rows, b_rows: Rows, horizon_ns: int) -> tuple[IntArray, IntArray]:
    """Pair equal keys of two captures, first in first out.

    In C (clib/match.c), by ctypes.

    For each key, the earliest packets of both captures are a pair unless they are too far apart;
    then the earlier one has no partner. Pairs do not depend on how a capture is cut into parts, if
    packets without a partner are tried again with the next part.

    Args:
        a_rows: packets of one capture, of type ROW, in time order.
        b_rows: packets of the other, on the same clock.
        horizon_ns: packets farther apart than this are not a pair.

    Returns: rows of a, ascending, and the rows of b with the same packets.
    """
    a, b = np.ascontiguousarray(a_rows), np.ascontiguousarray(b_rows)
    found = np.empty((2, min(len(a), len(b))), dtype=np.int64)
    count = clib.load().ca_match_join(
        a.ctypes.data,
        len(a),
        b.ctypes.data,
        len(b),
        horizon_ns,
        clib.random_bits(),
        found[0].ctypes.data,
        found[1].ctypes.data,
    )
    if count == _FAILED:
        raise MemoryError
    return found[0, :count], found[1, :count]


def partners(a: IntArray, b: IntArray) -> IntArray:
    """Find each key of one capture in another, whatever the times.

    In C (clib/match.c), by ctypes.

    Args:
        a: shape (n,), int64, the keys of one capture's packets, in order.
        b: shape (m,), int64, those of the other.

    Returns: shape (n,), for the k-th packet of a key the row of the k-th in b; -1 if b has fewer.
    """
    a, b = (np.ascontiguousarray(keys, dtype=np.int64) for keys in (a, b))
    rows = np.empty(len(a), dtype=np.int64)
    if not clib.load().ca_match_partners(
        a.ctypes.data, len(a), b.ctypes.data, len(b), clib.random_bits(), rows.ctypes.data
    ):
        raise MemoryError
    return rows


# The most packets that wait for a partner; beyond that, those that wait longest give up.
WAITING_LIMIT = 1 << 20
FOREVER = np.iinfo(np.int64).max
# The half or connection of the other capture, for a connection without a common packet.
UNKNOWN = -1


class PacketSource(Protocol):
    """The attributes of a `Capture` that matching needs."""

    @property
    def flows(self) -> FlowTable:
        """The connections seen so far."""

    def chunks(self) -> Iterator[Packets]:
        """Yield the packets in parts; each part overwrites the columns."""


@dataclass(frozen=True)
class Matched:
    """The result of a step of `match`.

    Attributes:
        a, b: rows of equal length: the same packets in both captures.
        a_alone, b_alone: packets that the other capture lacks.
        until_ns: the fate of every packet captured before this time is known.
    """

    a: Rows
    b: Rows
    a_alone: Rows
    b_alone: Rows
    until_ns: int


def own_clock(time_ns: IntArray) -> IntArray:
    """Return the times of a capture on whose clock the results are."""
    return np.asarray(time_ns, dtype=np.int64)


class CaptureReader:
    """One of the two captures, while it is read.

    Args:
        source: the capture.
        keys: hashes its packets.
        clock: converts its times, shape (n,), to those of the first capture.
        kinds: returns `Tracked.kind` of a chunk's packets; copies are then left out.
    """

    def __init__(
        self,
        source: PacketSource,
        keys: PacketKeys,
        clock: Callable[[IntArray], IntArray],
        kinds: Callable[[Packets, FlowTable], IntArray] | None = None,
    ) -> None:
        self.source, self.keys, self.clock = source, keys, clock
        self.kinds = kinds
        self.waiting = np.zeros(0, dtype=ROW)
        self.until_ns = self.last_ns = -FOREVER
        self.first_ns = FOREVER
        self.given_up = self.copies = 0
        self._chunks = source.chunks()
        self._read = 0

    def advance(self) -> None:
        """Read the next chunk; at the end, `until_ns` is FOREVER."""
        packets = next(self._chunks, None)
        if packets is None:
            self.until_ns = FOREVER
            return
        rows = self._rows(packets)
        time_ns = rows["time_ns"].copy()
        if len(time_ns):
            self.first_ns = min(self.first_ns, int(time_ns[0]))
            self.last_ns = self.until_ns = max(self.last_ns, int(time_ns.max()))
            if (time_ns[1:] < time_ns[:-1]).any():
                rows = take(rows, np.argsort(time_ns, kind="stable"))
        self.waiting = append_parts((self.waiting, rows)) if len(self.waiting) else rows

    def _rows(self, packets: Packets) -> Rows:
        flows = self.source.flows
        kind = self.kinds(packets, flows) if self.kinds else None
        time_ns = self.clock(packets.time_ns)
        rows = rows_of(packets, time_ns, kind, self.keys, flows=flows, first_order=self._read)
        self._read += len(packets)
        copies = rows["kind"] == Kind.COPY
        if copies.any():
            self.copies += int(copies.sum())
            rows = select_rows(rows, ~copies)
        return rows

    def give_up(self, found: IntArray, before_ns: int) -> Rows:
        """Remove found rows, and rows captured before a time, from `waiting`.

        Returns: the rows captured before that time, which have no partner.
        """
        left = np.ones(len(self.waiting), dtype=np.bool_)
        left[found] = False
        late = left & (self.waiting["time_ns"] < before_ns)
        excess = int((left ^ late).sum()) - WAITING_LIMIT
        if excess > 0:
            late[np.flatnonzero(left & ~late)[:excess]] = True
            self.given_up += excess
        alone = select_rows(self.waiting, late)
        self.waiting = select_rows(self.waiting, left & ~late)
        return alone


def match(a: CaptureReader, b: CaptureReader, horizon_ns: int) -> Iterator[Matched]:
    """Pair the packets of two captures.

    Args:
        a: one capture.
        b: the other, on the first's clock except for an error below the horizon.
        horizon_ns: the longest time that a packet takes from one tap to the other.
    """
    while a.until_ns < FOREVER or b.until_ns < FOREVER:
        # Each capture gets ahead of the other once: if only one did, few packets would find a
        # partner.
        for _ in range(2):
            _overtake(a, b)
        yield _step(a, b, horizon_ns)


def _overtake(a: CaptureReader, b: CaptureReader) -> None:
    """Read the capture that is behind until it is ahead.

    Reading ends early if too many of its packets wait.
    """
    behind, ahead = (a, b) if a.until_ns <= b.until_ns else (b, a)
    target = ahead.until_ns
    behind.advance()
    while behind.until_ns < target and len(behind.waiting) < WAITING_LIMIT:
        behind.advance()


def _step(a: CaptureReader, b: CaptureReader, horizon_ns: int) -> Matched:
    a_rows, b_rows = join(a.waiting, b.waiting, horizon_ns)
    found_a, found_b = take(a.waiting, a_rows), take(b.waiting, b_rows)
    a_alone = a.give_up(a_rows, b.until_ns - horizon_ns)
    b_alone = b.give_up(b_rows, a.until_ns - horizon_ns)
    until_ns = max(min(a.until_ns, b.until_ns), horizon_ns - FOREVER) - horizon_ns
    if a.until_ns == b.until_ns == FOREVER:
        until_ns = FOREVER
        a_alone, b_alone = (
            append_parts((alone, reader.waiting)) for alone, reader in ((a_alone, a), (b_alone, b))
        )
    return Matched(found_a, found_b, a_alone, b_alone, until_ns)

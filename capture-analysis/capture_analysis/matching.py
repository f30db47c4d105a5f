"""Find the same packets in two captures of one path, a window of both at a time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import BoolArray, FlowTable, IntArray, Packets
from capture_analysis.joining import join
from capture_analysis.packet_key import PacketKeys
from capture_analysis.tracking import Kind

# What is kept of a packet until its partner is found. `time_ns` is on the first capture's clock,
# `order` counts the capture's packets.
ROW = np.dtype(
    [
        ("time_ns", "<i8"),
        ("order", "<i8"),
        ("key", "<i8"),
        ("flow", "<u4"),
        ("seq", "<u4"),
        ("ack", "<u4"),
        ("payload_bytes", "<u4"),
        ("frame_bytes", "<u4"),
        ("flags", "<u2"),
        ("half", "u1"),
        ("kind", "u1"),
    ]
)
Rows = NDArray[np.void]

_WORDS = ROW.itemsize // 8

# More packets than this without a partner are not kept: those waiting longest give up.
WAITING_LIMIT = 1 << 20
FOREVER = np.iinfo(np.int64).max


class PacketSource(Protocol):
    """What is needed of a `Capture`."""

    @property
    def flows(self) -> FlowTable:
        """The connections seen so far."""

    def chunks(self) -> Iterator[Packets]:
        """The packets, in parts; the columns are overwritten by the next."""


def take(rows: Rows, which: IntArray) -> Rows:
    """Some rows, by number; several times as fast as indexing records."""
    words = rows.view(np.int64).reshape(-1, _WORDS)
    return words.take(which, axis=0).view(rows.dtype).reshape(-1)


def where(rows: Rows, which: BoolArray) -> Rows:
    """Some rows, by mask; the same rows if it is all of them."""
    chosen = np.flatnonzero(which)
    return rows if len(chosen) == len(rows) else take(rows, chosen)


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows of several parts, one part after the other; several times as fast as of records."""
    words = np.concatenate([part.view(np.int64).reshape(-1, _WORDS) for part in parts])
    return words.view(parts[0].dtype).reshape(-1)


@dataclass(frozen=True)
class Matched:
    """What a step of `match` has found out.

    Attributes:
        a, b: rows of equal length: the same packets in both captures.
        a_alone, b_alone: packets that the other capture does not have.
        until_ns: the fate of every packet captured before this time is known.
    """

    a: Rows
    b: Rows
    a_alone: Rows
    b_alone: Rows
    until_ns: int


class Side:
    """One of the captures, being read.

    Args:
        source: the capture.
        keys: recognises its packets.
        clock: turns its times, shape (n,), into those of the first capture.
        kinds: `Tracked.kind` of the packets of a chunk; copies are then left out.
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
        time_ns = rows["time_ns"]
        if len(time_ns):
            self.first_ns = min(self.first_ns, int(time_ns[0]))
            self.last_ns = self.until_ns = max(self.last_ns, int(time_ns.max()))
            if (time_ns[1:] < time_ns[:-1]).any():
                rows = take(rows, np.argsort(time_ns, kind="stable"))
        self.waiting = joined((self.waiting, rows)) if len(self.waiting) else rows

    def _rows(self, packets: Packets) -> Rows:
        flows, count = self.source.flows, len(packets)
        rows = np.empty(count, dtype=ROW)
        rows["time_ns"] = self.clock(packets.time_ns)
        rows["key"] = self.keys.of(packets, flows)
        rows["order"] = np.arange(self._read, self._read + count)
        rows["kind"] = self.kinds(packets, flows) if self.kinds else 0
        self._read += count
        for name in ("flow", "seq", "ack", "payload_bytes", "frame_bytes", "flags", "half"):
            rows[name] = getattr(packets, name)
        copies = rows["kind"] == Kind.COPY
        if copies.any():
            self.copies += int(copies.sum())
            rows = where(rows, ~copies)
        return rows

    def give_up(self, found: IntArray, before_ns: int) -> Rows:
        """Take rows out of `waiting`: those found, and those captured before a time.

        Returns: the latter, which found no partner.
        """
        left = np.ones(len(self.waiting), dtype=np.bool_)
        left[found] = False
        late = left & (self.waiting["time_ns"] < before_ns)
        excess = int(left.sum()) - int(late.sum()) - WAITING_LIMIT
        if excess > 0:
            late[np.flatnonzero(left & ~late)[:excess]] = True
            self.given_up += excess
        alone = where(self.waiting, late)
        self.waiting = where(self.waiting, left & ~late)
        return alone


def match(a: Side, b: Side, horizon_ns: int) -> Iterator[Matched]:
    """Pair the packets of two captures.

    Args:
        a: one capture.
        b: the other, on the first's clock to less than the horizon.
        horizon_ns: a packet takes at most so long from one tap to the other.
    """
    while a.until_ns < FOREVER or b.until_ns < FOREVER:
        behind, ahead = (a, b) if a.until_ns <= b.until_ns else (b, a)
        target = ahead.until_ns
        behind.advance()
        while behind.until_ns < target and len(behind.waiting) < WAITING_LIMIT:
            behind.advance()
        yield _step(a, b, horizon_ns)


def _step(a: Side, b: Side, horizon_ns: int) -> Matched:
    a_rows, b_rows = join(
        (a.waiting["key"], a.waiting["time_ns"]),
        (b.waiting["key"], b.waiting["time_ns"]),
        horizon_ns,
    )
    found_a, found_b = take(a.waiting, a_rows), take(b.waiting, b_rows)
    a_alone = a.give_up(a_rows, b.until_ns - horizon_ns)
    b_alone = b.give_up(b_rows, a.until_ns - horizon_ns)
    until_ns = max(min(a.until_ns, b.until_ns), horizon_ns - FOREVER) - horizon_ns
    if a.until_ns == b.until_ns == FOREVER:
        until_ns = FOREVER
        a_alone, b_alone = (
            joined((alone, side.waiting)) for alone, side in ((a_alone, a), (b_alone, b))
        )
    return Matched(found_a, found_b, a_alone, b_alone, until_ns)

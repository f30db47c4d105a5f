"""Data pendulum: whether both directions' queues fill in turn.

    index = correlation over time of (forward queue busy) and (reverse queue busy)

Pearson's coefficient of the two indicators, weighted by time: -1 if exactly one is busy at any
time, a pure pendulum: data and ACKs fill only one of the two buffers at a time (Heusse, Merritt,
Brown, Duda 2011). A queue is busy while it holds a packet, with the one in transmission. The share
of time in which neither is busy is capacity that both directions leave unused. The correlation of
the lengths is given, too: negative out of phase, positive in phase (Zhang, Shenker, Clark 1991).
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.definition import Definition
from capture_analysis.facts.busy_series import BusySeries
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import Facts
from capture_analysis.metrics.utilisation import UTILISATION, UTILISATION_OPPOSITE
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.two_captures.from_pair import FromPair, Step
from capture_analysis.two_captures.queue_levels import ActiveTime, Levels

LEAST_BINS = 20


TAP_PENDULUM_INDEX = Definition(
    "tap_pendulum_index",
    "1",
    "correlation over bins of time of the two links' transmitting, as if both were at the tap",
    least=-1,
    most=1,
)
TAP_BOTH_BUSY = Definition(
    "tap_both_busy",
    "1",
    "share of bins of time in which both links transmit at least half of it",
    most=1,
)
TAP_NEITHER_BUSY = Definition(
    "tap_neither_busy",
    "1",
    "share of bins of time in which each link transmits less than half of it",
    most=1,
)
TAP_PENDULUM_BIN = Definition(
    "tap_pendulum_bin", "ms", "width of the bins of time of `tap_pendulum_index`"
)

FloatArray = NDArray[np.float64]

_ONE_WAY = "packets pass both taps in one direction only"
_ALWAYS = "a queue is always busy, or never"


PENDULUM_INDEX = Definition(
    "pendulum_index",
    "1",
    "correlation over time of the two queues being busy; -1 if exactly one is",
    "Heusse, Merritt, Brown, Duda 2011",
    least=-1,
    most=1,
)
QUEUE_CORRELATION = Definition(
    "queue_correlation",
    "1",
    "correlation over time of the two queues' lengths; negative is out of phase",
    "Zhang, Shenker, Clark 1991",
    least=-1,
    most=1,
)
NEITHER_BUSY = Definition(
    "neither_busy", "1", "share of time in which both queues are empty", most=1
)
BOTH_BUSY = Definition("both_busy", "1", "share of time in which both queues hold packets", most=1)


class LinksAtTap(FromOne):
    """Both links' transmissions as if both links were at the tap.

    Vantage: at the bottleneck. The index of the queues needs both ends of the path. Here both
    directions are as the tap sees them. The path between tap and bottleneck shifts them in time,
    which may hide a pendulum or show a false one. Therefore the names begin with `tap_`.

    A link is busy for a packet's transmission time with each data segment and each pure ACK in its
    direction, of all connections; packets that come faster wait. Bins are 2^k ns, 131 us or more
    (`tap_pendulum_bin`): with bins beyond half a round trip time the index has little meaning.
    Times of a second or more in which both links are idle are left out. `utilisation` is that of
    the link with more payload.
    """

    title = "Links at the tap"
    picture = "in-flight"
    vantage = "at the bottleneck"
    per_capture = (
        TAP_PENDULUM_INDEX,
        TAP_BOTH_BUSY,
        TAP_NEITHER_BUSY,
        UTILISATION,
        UTILISATION_OPPOSITE,
        TAP_PENDULUM_BIN,
    )

    def __init__(self) -> None:
        self._series = BusySeries()

    @override
    def add(self, block: Block) -> None:
        facts = block.facts
        for view, side, ns_per_byte in (
            (block.data, facts.side, facts.data_ns_per_byte),
            (block.acks, 1 - facts.side, facts.ack_ns_per_byte),
        ):
            service_ns = view["frame_bytes"] * view.spread(np.nan_to_num(ns_per_byte))
            # Whole ns: their sum does not depend on the order of the packets.
            self._series.add(view.spread(side), view["time_ns"], service_ns.astype(np.int64))

    @override
    def merge(self, other: Self) -> None:
        self._series.merge(other._series)

    @override
    def of_capture(self, tally: Tally, facts: Facts) -> Values:
        shares = self._series.shares()
        busy = shares.busy
        is_busy = busy >= 0.5
        if busy.shape[1] < LEAST_BINS or not busy.any():
            why = "too short, or no rate for the links"
            return dict.fromkeys(self.per_capture, why)
        directions = tally.directions()
        payload = np.bincount(
            facts.side[directions], tally.payload.values_of(directions), minlength=2
        )
        main = int(payload.argmax())
        still = (busy == busy[:, :1]).all(axis=1).any()
        return {
            TAP_PENDULUM_INDEX: "a link is always idle or always busy"
            if still
            else float(np.corrcoef(busy[0], busy[1])[0, 1]),
            TAP_BOTH_BUSY: float(is_busy.all(axis=0).mean()),
            TAP_NEITHER_BUSY: float((~is_busy).all(axis=0).mean()),
            UTILISATION: float(busy[main].mean()),
            UTILISATION_OPPOSITE: float(busy[1 - main].mean()),
            TAP_PENDULUM_BIN: shares.width_ns / 1e6,
        }


class Pendulum(FromPair):
    """Correlation of the two queues between the taps.

    The clock is common, and the time is that in which both queues are known; pauses (both empty for
    a second or more) are left out.
    """

    title = "Data pendulum"
    picture = "queue"
    per_pair = (PENDULUM_INDEX, QUEUE_CORRELATION, NEITHER_BUSY, BOTH_BUSY)

    @override
    def start(self) -> None:
        # Sums over time of 1, x, y, x x, y y and x y, where x and y are busy (0 or 1), or lengths.
        self._busy, self._length = np.zeros(6), np.zeros(6)
        self._active = ActiveTime()
        self._parts: tuple[list[Levels], list[Levels]] = ([], [])

    @override
    def add(self, step: Step) -> None:
        for kept, levels in zip(self._parts, step.levels, strict=True):
            if levels is not None:
                kept.append(levels)
        first, second = (_join_levels(kept) for kept in self._parts)
        if first is None or second is None:
            return
        start = max(int(first.time_ns[0]), int(second.time_ns[0]))
        stop = min(first.until_ns, second.until_ns)
        if stop > start:
            self._add(first, second, start, stop)
        for kept, levels in zip(self._parts, (first, second), strict=True):
            begin = max(stop, int(levels.time_ns[0]))
            kept[:] = [_cut(levels, begin, levels.until_ns)] if levels.until_ns > begin else []

    def _add(self, first: Levels, second: Levels, start: int, stop: int) -> None:
        first, second = _cut(first, start, stop), _cut(second, start, stop)
        self._add_busy(first, second, stop)
        dx, dy = first.duration_ns, second.duration_ns
        x, y = first.packets, second.packets
        x_ns, y_ns = x * dx, y * dy
        # The integral of y up to each of x's times.
        until = np.append(0, np.cumsum(y_ns))
        edges = np.append(first.time_ns, stop)
        at = np.searchsorted(second.time_ns, edges, side="right") - 1
        amount = until.take(at) + y.take(at) * (edges - second.time_ns.take(at))
        found = x_ns.sum(), y_ns.sum(), x @ x_ns, y @ y_ns, x @ np.diff(amount)
        self._length += np.array([0, *found], dtype=np.float64)

    def _add_busy(self, first: Levels, second: Levels, stop: int) -> None:
        changes = [_busy_changes(each) for each in (first, second)]
        edges = np.sort(np.concatenate([time_ns for time_ns, _ in changes]))
        x, y = (
            busy[np.searchsorted(time_ns, edges, side="right") - 1] for time_ns, busy in changes
        )
        weight = self._active.durations(np.diff(edges, append=stop), ~(x | y)).astype(np.float64)
        found = [weight[1:][each].sum() for each in (x, y, x, y, x & y)]
        self._busy += np.array([weight.sum(), *found])
        self._length[0] = self._busy[0]

    @override
    def of_pair(self) -> Values:
        total, x, y, _, _, both = self._busy
        if not total:
            return dict.fromkeys(self.per_pair, _ONE_WAY)
        return {
            PENDULUM_INDEX: _correlation(self._busy),
            QUEUE_CORRELATION: _correlation(self._length),
            NEITHER_BUSY: float((total - x - y + both) / total),
            BOTH_BUSY: float(both / total),
        }


def _cut(levels: Levels, start: int, stop: int) -> Levels:
    """Cut a step function to the part between two times within its span."""
    first = int(np.searchsorted(levels.time_ns, start, side="right")) - 1
    last = int(np.searchsorted(levels.time_ns, stop))
    time_ns = levels.time_ns[first:last].copy()
    time_ns[0] = start
    return Levels(time_ns, levels.packets[first:last], levels.bytes[first:last], stop)


def _busy_changes(levels: Levels) -> tuple[IntArray, BoolArray]:
    """Find the times at which a queue becomes busy or empty, and its state at the start."""
    busy = levels.packets > 0
    at = np.flatnonzero(np.append(True, busy[1:] != busy[:-1]))
    return levels.time_ns[at], busy[at]


def _correlation(sums: FloatArray) -> float | str:
    total, x, y, xx, yy, xy = sums
    spread = (xx / total - (x / total) ** 2) * (yy / total - (y / total) ** 2)
    if spread <= 1e-18:
        return _ALWAYS
    return float((xy / total - x * y / total**2) / np.sqrt(spread))


def _join_levels(parts: list[Levels]) -> Levels | None:
    if not parts:
        return None
    return Levels(
        np.concatenate([part.time_ns for part in parts]),
        np.concatenate([part.packets for part in parts]),
        np.concatenate([part.bytes for part in parts]),
        parts[-1].until_ns,
    )

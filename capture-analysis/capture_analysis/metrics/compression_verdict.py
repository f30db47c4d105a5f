"""Verdict: whether the ACKs are compressed, if a capture can tell.

    faster = share of the ACKs in runs of three or more that acknowledge faster than the data's
             bottleneck lets data arrive: each gap < 0.75 of the transmission time there of its data
    shrunk = share of the ACKs in runs of three or more that by their time stamps took longer to
             be sent: dT_r + C_r < 0.75 (dT_s - C_s)   (compression_events; Paxson 1997)

    1  compressed      shrunk >= 0.05
    0  not compressed  both shares < 0.02; or only shrunk < 0.02, and time stamps show that the
                       receiver held at least 0.9 of the ACKs in the faster runs (held_acks)
    -  cannot be told  otherwise

The verdict needs this evidence (`one_capture/evidence.py`; other numbers on ACKs need it, too):

* a tap not within a tenth of the round trip from the data's receiver, so that ACKs reach it after a
  part of their path; handshake and data agree by at least half about the tap's place;
* 30 ACKs of new data or more (LEAST_ACKS);
* segments: most have at least 0.8 of the largest size, and the largest is no larger than the
  receiver announced. Merged segments (offload) hide how their data were spaced;
* a clock no coarser than half a segment's transmission time;
* a rate of the data's bottleneck that is given or measured (bottleneck_rate), except that `shrunk`
  needs none.

ACKs that come in bunches may have waited in a queue or left the receiver so: without time stamps,
or with too coarse a tick, the two look alike, and the verdict is that it cannot be told. 0.05 is
the share from which the corpus of simulated captures calls ACKs compressed, 0.02 is halfway
(geometric mean) to the 0.01 below which it calls them spaced; docs/how-true.md has how often the
verdict is wrong.

Vantage: any; at the data's sender the whole path of the ACKs is judged, in the middle its part from
the receiver to the tap.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import AGREES, Facts
from capture_analysis.facts.running_totals import LaneArray
from capture_analysis.metrics.ack_bunches import BUNCH_ACKS
from capture_analysis.metrics.compression_events import NO_TICKS
from capture_analysis.one_capture.evidence import missing_evidence, missing_rate
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.streaks import StreakFinder, Streaks

# Shares of ACKs: below the first the ACKs are not compressed, from the second on they are.
NOTABLE_SHARE, COMPRESSED_SHARE = 0.02, 0.05
_HELD_SHARE = 0.9  # if the receiver held this share of the faster ACKs, they are not compressed

COMPRESSION_VERDICT = Definition(
    "compression_verdict",
    "1",
    "1: ACKs are compressed on their path to the tap; 0: they are not; none: it cannot be told",
    most=1,
)
ACKS_FASTER = Definition(
    "acks_faster",
    "1",
    "share of ACKs in runs of three or more that acknowledge faster than data can arrive",
    "Mogul 1992",
    most=1,
)
ACKS_SHRUNK = Definition(
    "acks_shrunk",
    "1",
    "share of ACKs in runs of three or more that were sent over 4/3 of the time, by time stamps",
    "Paxson 1997",
    most=1,
)


BUNCHED = (
    "ACKs come faster than their data can have arrived, but whether the path compressed them or "
    "the receiver held them is not seen: time stamps (RFC 7323), or a second capture at the "
    "receiver, would tell"
)
FEW = (
    "some of the ACKs shrank on the path, too few to call them compressed, too many to call them "
    "spaced: a second capture at the receiver would tell"
)
BUNCHED_IN_TICKS = (
    "ACKs come faster than their data can have arrived, but their time stamps are too coarse to "
    "show whether the path compressed them or the receiver held them: a second capture at the "
    "receiver would tell"
)


@dataclass(frozen=True)
class Shares:
    """Shares of a direction's ACKs, 0 to 1.

    Attributes:
        faster: in runs that acknowledge faster than data can arrive.
        held: in faster runs that the receiver held.
        shrunk: in runs that shrank by their time stamps; None without time stamps.
    """

    faster: float
    held: float
    shrunk: float | None


class CompressionVerdict(FromOne):
    """The verdict on each direction's ACKs, and the two shares behind it."""

    title = "Are ACKs compressed?"
    picture = "ack-spacing"
    vantage = "not near the data's receiver"
    per_direction = (COMPRESSION_VERDICT, ACKS_FASTER, ACKS_SHRUNK)

    def __init__(self) -> None:
        self._faster, self._shrunk = StreakFinder(3, BUNCH_ACKS), StreakFinder(2, BUNCH_ACKS)
        # Counts of ACKs: in faster runs, in faster runs that were held, in runs that shrank.
        self._in_runs = LaneArray(np.add, 0, 3)

    @override
    def add(self, block: Block) -> None:
        acks, facts = block.acks, block.facts
        gap_ns, sent_ns, fast = acks["gap_ns"], block.sent_gap_ns, block.acks_faster
        spans = acks["acked_bytes"] * fast, sent_ns * fast, sent_ns >= 0
        self._take_fast(self._faster.add(acks.direction, fast, acks["time_ns"], spans), facts)
        if np.isnan(facts.tick_ns[acks.directions]).all():
            return
        tick_ns = acks.spread(facts.tick_whole_ns)
        # A gap of a tick or less continues a run at the pace of the data, or faster.
        shrunk = (sent_ns > tick_ns) & (gap_ns < COMPRESSED_BELOW * sent_ns)
        shrunk |= (sent_ns >= 0) & (sent_ns <= tick_ns) & (gap_ns <= (1 + AGREES) * block.acked_ns)
        shrunk &= gap_ns >= 0
        times = sent_ns * shrunk, gap_ns * shrunk
        self._take_shrunk(self._shrunk.add(acks.direction, shrunk, acks["time_ns"], times), facts)

    @override
    def finish(self, facts: Facts) -> None:
        self._take_fast(self._faster.finish(), facts)
        self._take_shrunk(self._shrunk.finish(), facts)

    def _take_fast(self, runs: Streaks, facts: Facts) -> None:
        data_ns = runs.total[0] * facts.acked_ns_per_byte[runs.lane]
        sent_ns = runs.total[1] + facts.tick_ns[runs.lane]
        held = (sent_ns < COMPRESSED_BELOW * data_ns) & (runs.total[2] == runs.rows)
        self._count(runs, runs.rows, runs.rows * held, 0 * runs.rows)

    def _take_shrunk(self, runs: Streaks, facts: Facts) -> None:
        sent_ns = runs.total[0] - facts.tick_ns[runs.lane]
        arrived_ns = runs.total[1] + facts.clock_ns[runs.lane]
        nothing = 0 * runs.rows
        event = (sent_ns > 0) & (arrived_ns < COMPRESSED_BELOW * sent_ns)
        self._count(runs, nothing, nothing, runs.rows * event)

    def _count(self, runs: Streaks, *acks: IntArray | BoolArray) -> None:
        self._in_runs.add_rows(runs.lane, np.stack(acks, axis=1))

    @override
    def merge(self, other: Self) -> None:
        self._in_runs.merge(other._in_runs)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        # Runs that shrank have ACKs of any kind; faster runs have ACKs of new data.
        new, every = max(tally.spaced_acks.value_of(direction), 1), max(tally.acks(direction), 1)
        runs = zip(self._in_runs.value_of(direction), (new, new, every), strict=True)
        faster, held, shrunk = (min(int(acks) / of_all, 1.0) for acks, of_all in runs)
        stamped = not np.isnan(facts.tick_ns[direction])
        shares = Shares(faster, held, shrunk if stamped else None)
        missing = missing_evidence(direction, tally, facts)
        return {
            COMPRESSION_VERDICT: missing or verdict(shares, direction, facts),
            ACKS_FASTER: missing or missing_rate(direction, facts) or faster,
            ACKS_SHRUNK: missing or (shrunk if stamped else NO_TICKS),
        }


def verdict(shares: Shares, direction: int, facts: Facts) -> int | str:
    """Return 1 (compressed), 0 (not), or the reason why it cannot be told."""
    if shares.shrunk is not None and shares.shrunk >= NOTABLE_SHARE:
        return 1 if shares.shrunk >= COMPRESSED_SHARE else FEW
    if unrated := missing_rate(direction, facts):
        return unrated
    if shares.faster < NOTABLE_SHARE:
        return 0
    if shares.shrunk is None:
        return BUNCHED
    return 0 if shares.held >= _HELD_SHARE * shares.faster else BUNCHED_IN_TICKS


def verdict_word(value: float | str | None) -> str:
    """Name a verdict: 1, 0, or the reason without one."""
    if isinstance(value, str) or value is None:
        return "bunched" if value in (BUNCHED, BUNCHED_IN_TICKS) else "cannot tell"
    return "compressed" if value else "spaced"

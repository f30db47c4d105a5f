"""Losses: their number, their epochs, and the connections that lose together.

Losses of data are clustered into congestion epochs: a loss belongs to the epoch of the one before
if they are at most the longest round trip apart (congestion_epochs.py; Zhang, Shenker, Clark 1991):
the longest seen, or in a run the one with every queue full. Only the first million losses count.

    loss_synchronisation = mean over epochs of (directions that lose - 1) / (those with data - 1)

It is 1 if all lose in every epoch, in phase; 0 if one at a time, out of phase.
"""

from typing import Self

import numpy as np

from capture_analysis.columns import IntArray
from capture_analysis.congestion_epochs import CongestionEpochs, congestion_epochs
from capture_analysis.definition import Definition
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import Facts
from capture_analysis.facts.running_totals import LaneArray, occurrences
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.tracking import Kind
from capture_analysis.two_captures.from_pair import FromPair, Step
from capture_analysis.two_captures.holes import Holes
from capture_analysis.two_captures.match_rows import Rows, select_rows
from capture_analysis.two_captures.packets_between import ABSENT, CROSSING, is_ack, is_data

LOSS_SYNCHRONISATION = Definition(
    "loss_synchronisation",
    "1",
    "mean over congestion epochs of the share of the other directions that also lose",
    "Zhang, Shenker, Clark 1991",
    most=1,
)

DROPS_KEPT = 1 << 20
_DATA, _ACK, _CONTROL = range(3)
_KINDS = 3
_NO_EPOCH = "no packet was lost"


DATA_OFFERED = Definition("data_offered", "packets", "data packets at the first tap")
DATA_LOST = Definition("data_lost", "packets", "data packets lost between the taps")
DATA_MISSED = Definition(
    "data_missed", "packets", "data packets that arrived but are not in the second capture"
)
DATA_MISSED_FIRST = Definition(
    "data_missed_first", "packets", "data packets that the first capture missed"
)
ACKS_OFFERED = Definition("acks_offered", "acks", "pure ACKs at their first tap")
ACKS_LOST = Definition("acks_lost", "acks", "pure ACKs that were sent and did not arrive")
ACKS_MISSED_FIRST = Definition(
    "acks_missed_first", "acks", "pure ACKs that the capture at their first tap missed"
)
CONTROL_LOST = Definition(
    "control_lost", "packets", "SYN, FIN and RST of the data's sender that were lost"
)
CONGESTION_EPOCHS = Definition(
    "congestion_epochs",
    "1",
    "clusters, further apart than the longest round trip, of lost data packets",
    "Zhang, Shenker, Clark 1991",
)
DROPS_PER_EPOCH = Definition(
    "drops_per_epoch",
    "packets",
    "mean data packets lost in a congestion epoch",
    "Zhang, Shenker, Clark 1991",
    least=1,
)
SINGLE_VICTIM_EPOCHS = Definition(
    "single_victim_epochs",
    "1",
    "share of the congestion epochs in which one sender has all losses",
    "Zhang, Shenker, Clark 1991",
    most=1,
)
ALTERNATING_VICTIMS = Definition(
    "alternating_victims",
    "1",
    "share of pairs of successive epochs in which one sender has all losses, then another",
    "Zhang, Shenker, Clark 1991",
    most=1,
)


RECOVERIES = Definition(
    "recoveries",
    "1",
    "clusters, further apart than the longest round trip, of segments sent again or late",
)
RECOVERY_SYNCHRONISATION = Definition(
    "recovery_synchronisation",
    "1",
    "mean over recoveries of the share of the other directions that also recover",
    most=1,
)


class Recoveries(FromOne):
    """Clusters of segments that are sent again or come late, and connections that recover together.

    Vantage: any. One capture shows a loss only by its repair, a round trip or a timeout later; a
    repair after a timeout is a cluster of its own. Reordering looks like a repair. Therefore these
    metrics have other names than those of losses. Clusters are further apart than the longest round
    trip at the tap. Only the first million such segments count.
    """

    title = "Recoveries"
    per_capture = (RECOVERIES, RECOVERY_SYNCHRONISATION)

    def __init__(self) -> None:
        # Time and direction of each such segment, shape (2, n), block by block.
        self._repairs: list[IntArray] = []
        self._kept = self._longest_ns = 0

    @override
    def add(self, block: Block) -> None:
        tracked = block.tracked
        self._longest_ns = max(self._longest_ns, int(tracked.rtt_ns.max(initial=0)))
        rows = np.flatnonzero(
            (tracked.kind == Kind.RETRANSMISSION) | (tracked.kind == Kind.LATE_DATA)
        )
        rows = rows[: max(DROPS_KEPT - self._kept, 0)]
        if len(rows):
            time_ns = block.packets.time_ns[rows]
            self._repairs.append(np.stack((time_ns, block.direction[rows].astype(np.int64))))
            self._kept += len(rows)

    @override
    def merge(self, other: Self) -> None:
        self._repairs += other._repairs
        self._longest_ns = max(self._longest_ns, other._longest_ns)

    @override
    def of_capture(self, tally: Tally, facts: Facts) -> Values:
        repairs = np.concatenate([np.zeros((2, 0), dtype=np.int64), *self._repairs], axis=1)
        time_ns, direction = repairs[:, np.lexsort(repairs[::-1])[:DROPS_KEPT]]
        clusters = congestion_epochs(time_ns, direction, self._longest_ns)
        return {
            RECOVERIES: len(clusters.drops),
            RECOVERY_SYNCHRONISATION: _joint_share(clusters, direction, len(tally.directions())),
        }


class Loss(FromPair):
    """Packets lost between the taps, and congestion epochs.

    A packet that its first tap has and its second lacks is lost, unless ACKs show that its data
    arrived (holes.py); a packet that the second has and the first lacks was missed by the first
    capture. For pure ACKs and control packets there is no such evidence: they count as lost.
    """

    title = "Loss between the taps"
    picture = "queue"
    per_direction = (
        DATA_OFFERED,
        DATA_LOST,
        DATA_MISSED,
        DATA_MISSED_FIRST,
        ACKS_OFFERED,
        ACKS_LOST,
        ACKS_MISSED_FIRST,
        CONTROL_LOST,
    )
    per_pair = (
        CONGESTION_EPOCHS,
        DROPS_PER_EPOCH,
        SINGLE_VICTIM_EPOCHS,
        ALTERNATING_VICTIMS,
        LOSS_SYNCHRONISATION,
    )

    @override
    def start(self) -> None:
        self._holes = Holes(), Holes()
        # By direction and kind: offered, lost, missed at the second tap, missed at the first.
        self._offered, self._lost, self._missed, self._missed_first = (
            LaneArray(np.add, 0, _KINDS) for _ in range(4)
        )
        self._drops: list[Rows] = []
        self._kept = 0

    @override
    def add(self, step: Step) -> None:
        for crossings, opposite in (step.crossings, step.crossings[::-1]):
            sent = crossings.sent
            here = sent["first_ns"] != ABSENT
            _count(self._offered, select_rows(sent, here))
            _count(self._missed_first, select_rows(sent, ~here))
            gone = select_rows(sent, sent["second_ns"] == ABSENT)
            gone = select_rows(gone, ~is_data(gone))
            lost, missed = self._holes[crossings.path_direction].add(crossings, opposite)
            _count(self._missed, missed)
            _count(self._lost, gone)
            self._lose(lost)

    def _lose(self, rows: Rows) -> None:
        """Count lost data, and keep it for the epochs."""
        _count(self._lost, rows)
        room = max(DROPS_KEPT - self._kept, 0)
        self._drops.append(rows[:room])
        self._kept += len(rows)

    @override
    def finish(self) -> None:
        """Count the data that is undecided at the end as lost."""
        for holes in self._holes:
            self._lose(holes.finish())

    @override
    def of_direction(self, direction: int) -> Values:
        offered, lost, missed, first = (
            each.value_of(direction)
            for each in (self._offered, self._lost, self._missed, self._missed_first)
        )
        return {
            DATA_OFFERED: int(offered[_DATA]),
            DATA_LOST: int(lost[_DATA]),
            DATA_MISSED: int(missed[_DATA]),
            DATA_MISSED_FIRST: int(first[_DATA]),
            ACKS_OFFERED: int(offered[_ACK]),
            ACKS_LOST: int(lost[_ACK]),
            ACKS_MISSED_FIRST: int(first[_ACK]),
            CONTROL_LOST: int(lost[_CONTROL]),
        }

    @override
    def of_pair(self) -> Values:
        drops: Rows = np.concatenate([np.zeros(0, dtype=CROSSING), *self._drops])
        if not len(drops):
            return {**dict.fromkeys(self.per_pair, _NO_EPOCH), CONGESTION_EPOCHS: 0}
        drops = drops[np.argsort(drops["first_ns"], kind="stable")]
        direction = 2 * drops["flow"].astype(np.int64) + drops["half"]
        carrying = int((self._offered.values()[:, _DATA] > 0).sum())
        gap_ns = self.facts.longest_round_trip_ns
        epochs = congestion_epochs(drops["first_ns"], direction, gap_ns)
        alternating = epochs.alternating_share()
        return {
            CONGESTION_EPOCHS: len(epochs.drops),
            DROPS_PER_EPOCH: float(epochs.drops.mean()),
            SINGLE_VICTIM_EPOCHS: epochs.single_victim_share(),
            ALTERNATING_VICTIMS: (
                "fewer than two epochs" if np.isnan(alternating) else alternating
            ),
            LOSS_SYNCHRONISATION: _joint_share(epochs, direction, carrying),
        }


def _joint_share(epochs: CongestionEpochs, direction: IntArray, carrying: int) -> float | str:
    """Compute the mean over epochs of the share of the other directions that lose, too.

    Args:
        epochs: the epochs.
        direction: shape (n,), the direction of each loss, in order of time.
        carrying: number of directions with data.
    """
    if carrying < 2 or not len(epochs.drops):
        return "fewer than two directions with data" if carrying < 2 else _NO_EPOCH
    epoch = np.repeat(np.arange(len(epochs.drops)), epochs.drops)
    directions = int(direction.max()) + 1
    each, _ = occurrences(epoch * directions + direction)
    together = np.bincount(each // directions)
    return float((together - 1).mean() / (carrying - 1))


def _count(counts: LaneArray, rows: Rows) -> None:
    """Add packets by direction and kind.

    ACKs count for the direction whose data they acknowledge.
    """
    if not len(rows):
        return
    acks, data = is_ack(rows), is_data(rows)
    cell = rows["flow"].astype(np.int64)
    cell *= 2 * _KINDS
    cell += (rows["half"] ^ acks) * np.uint8(_KINDS) + np.uint8(_CONTROL) - acks - 2 * data
    directions = int(cell.max()) // _KINDS + 1
    table = np.bincount(cell, minlength=directions * _KINDS).reshape(-1, _KINDS)
    counts.add(np.arange(directions), table)

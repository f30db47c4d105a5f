"""Loss between the taps by kind of packet.

Packets that a capture missed are counted apart.

A packet that the first tap on its way has and the second lacks is lost, unless ACKs show that its
data arrived (holes.py); a packet that the second has and the first lacks was missed by the first
capture. For pure ACKs and control packets there is no such evidence: they count as lost. Units 1.

Drops are clustered into congestion epochs: a drop belongs to the epoch of the drop before it if
they are at most the longest round trip between the taps apart (congestion_epochs.py). The
synchronisation index is the mean over epochs of (connections that lose - 1) / (connections with
drops - 1): 1 if all lose together, in phase; 0 if one at a time, out of phase (Zhang, Shenker,
Clark 1991).
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from capture_analysis.columns import IntArray
from capture_analysis.congestion_epochs import CongestionEpochs, congestion_epochs
from capture_analysis.one_capture.lanes import LaneArray
from capture_analysis.two_captures.crossings import ABSENT, CROSSING, is_ack, is_data
from capture_analysis.two_captures.holes import Holes
from capture_analysis.two_captures.match_rows import Rows, where
from capture_analysis.two_captures.pair_measure import PairMeasure, Quantity, Step, Values

DROPS_KEPT = 1 << 20
_DATA, _ACK, _CONTROL = range(3)
_KINDS = 3
_NO_EPOCH = "no packet was lost"


class Loss(PairMeasure):
    """Packets lost between the taps, and congestion epochs."""

    title = "Loss between the taps"
    picture = "queue"
    per_direction: ClassVar[Sequence[Quantity]] = (
        Quantity("data_offered", "1", "data packets at the first tap"),
        Quantity("data_lost", "1", "of these, lost before the second"),
        Quantity("data_missed", "1", "of these, not in the second capture though they arrived"),
        Quantity("data_missed_first", "1", "data packets that the first capture missed"),
        Quantity("acks_offered", "1", "pure ACKs at the first tap on their way"),
        Quantity("acks_lost", "1", "of these, not at the second"),
        Quantity("acks_missed_first", "1", "pure ACKs that the capture before missed"),
        Quantity("control_lost", "1", "SYN, FIN and RST of the data's sender that were lost"),
    )
    per_pair: ClassVar[Sequence[Quantity]] = (
        Quantity("congestion_epochs", "1", "clusters of losses"),
        Quantity("drops_per_epoch", "packets", "mean losses in one"),
        Quantity("single_victim_epochs", "1", "share of epochs in which one connection loses"),
        Quantity("alternating_victims", "1", "share of epochs that change the single victim"),
        Quantity("synchronisation", "1", "index, from out of phase (0) to in phase (1)"),
    )

    def start(self) -> None:
        """Create the empty counts and sums."""
        self._holes = Holes(), Holes()
        # By direction and kind: offered, lost, missed at the second tap, missed at the first.
        self._offered, self._lost, self._missed, self._missed_first = (
            LaneArray(np.add, 0, _KINDS) for _ in range(4)
        )
        self._drops: list[Rows] = []
        self._kept = 0

    def add(self, step: Step) -> None:
        """Take the next packets."""
        for crossings, opposite in (step.ways, step.ways[::-1]):
            sent = crossings.sent
            here = sent["first_ns"] != ABSENT
            _count(self._offered, where(sent, here))
            _count(self._missed_first, where(sent, ~here))
            gone = where(sent, sent["second_ns"] == ABSENT)
            gone = where(gone, ~is_data(gone))
            lost, missed = self._holes[crossings.way].add(crossings, opposite)
            _count(self._missed, missed)
            self._lose(gone)
            self._lose(lost)

    def _lose(self, rows: Rows) -> None:
        _count(self._lost, rows)
        room = max(DROPS_KEPT - self._kept, 0)
        self._drops.append(rows[:room])
        self._kept += len(rows)

    def finish(self) -> None:
        """Count the packets that are undecided at the end as lost."""
        for holes in self._holes:
            self._lose(holes.finish())

    def of_direction(self, direction: int) -> Values:
        """Return the quantities of one direction, by name."""
        offered, lost, missed, first = (
            each.of(direction)
            for each in (self._offered, self._lost, self._missed, self._missed_first)
        )
        return {
            "data_offered": int(offered[_DATA]),
            "data_lost": int(lost[_DATA]),
            "data_missed": int(missed[_DATA]),
            "data_missed_first": int(first[_DATA]),
            "acks_offered": int(offered[_ACK]),
            "acks_lost": int(lost[_ACK]),
            "acks_missed_first": int(first[_ACK]),
            "control_lost": int(lost[_CONTROL]),
        }

    def of_pair(self) -> Values:
        """Return the quantities of both captures together, by name."""
        drops: Rows = np.concatenate([np.zeros(0, dtype=CROSSING), *self._drops])
        if not len(drops):
            names = (q.name for q in self.per_pair)
            return {**dict.fromkeys(names, _NO_EPOCH), "congestion_epochs": 0}
        order = np.argsort(drops["first_ns"], kind="stable")
        time_ns, flow = drops["first_ns"][order], drops["flow"][order].astype(np.int64)
        epochs = congestion_epochs(time_ns, flow, self.facts.longest_round_trip_ns)
        alternating = epochs.alternating_share()
        return {
            "congestion_epochs": len(epochs.drops),
            "drops_per_epoch": float(epochs.drops.mean()),
            "single_victim_epochs": epochs.single_victim_share(),
            "alternating_victims": (
                "fewer than two epochs" if np.isnan(alternating) else alternating
            ),
            "synchronisation": _synchronisation(epochs, flow),
        }


def _synchronisation(epochs: CongestionEpochs, flow: IntArray) -> float | str:
    """Compute the mean share of other losers that lose in an epoch."""
    losers = len(np.unique(flow))
    if losers < 2:
        return "fewer than two connections lose packets"
    epoch = np.repeat(np.arange(len(epochs.drops)), epochs.drops)
    together = np.bincount(np.unique(np.stack((epoch, flow)), axis=1)[0])
    return float((together - 1).mean() / (losers - 1))


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

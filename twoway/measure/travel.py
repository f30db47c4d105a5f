"""Packets of a run from one capture to the next on their path, whoever sent them.

A packet is captured where it leaves its host, where it enters and leaves each queue, and where it
reaches the host that it is for. What happens between two of these places is a link's doing.
"""

import itertools
from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from capture_analysis.columns import BoolArray, IntArray, Packets

from twoway.contract.network import Queue
from twoway.measure.queue_view import QueueView
from twoway.measure.queues import times_after
from twoway.measure.run_folder import Run


class Hop(NamedTuple):
    """Two places on a path, one after the other, by their interfaces.

    Attributes:
        before: the host's or the queue's interface at which packets leave.
        after: the interface of the queue that they enter next, or of the host that they are for.
    """

    before: str
    after: str


@dataclass(frozen=True)
class Travel:
    """Packets between two places of their path.

    Attributes:
        sent: shape (n,), the packets as they left the first place.
        came_ns: shape (n,), arrival of each packet's first copy; -1 if it never arrived.
        arrivals: number of all packets that arrived.
        under_way: shape (n,), True if the packet may still have been on its path when the captures
            ended.
    """

    sent: Packets
    came_ns: IntArray
    arrivals: int
    under_way: BoolArray

    @property
    def lost(self) -> BoolArray:
        """Mark the packets that the link lost; shape (n,)."""
        return (self.came_ns < 0) & ~self.under_way


def follow(sent: Packets, came: Packets, until_ns: int) -> Travel:
    """Find packets again at the next place of their path.

    Args:
        sent: the packets as they left the first place.
        came: the packets that came to the next.
        until_ns: packets that left at this time or later may have been on their path at the end.
    """
    came_ns = times_after(sent, came)
    return Travel(sent, came_ns, len(came), (came_ns < 0) & (sent.time_ns >= until_ns))


class Travels:
    """All hops of a run, and the packets of each."""

    def __init__(self, run: Run, queues: dict[str, QueueView]) -> None:
        self._run = run
        self._queues = {view.queue.interface: view for view in queues.values()}
        self._longest_ns = max((each.delay_ns for each in run.queues), default=0)
        self.hops = self._hops()

    def follow_hop(self, hop: Hop) -> Travel:
        """Follow the packets of a hop."""
        run, numbers = self._run, self.hops[hop]
        behind = self._queues.get(hop.before)
        last = hop.after not in self._queues
        delay_ns = behind.queue.delay_ns if behind and last else self._longest_ns
        sent = run.of_directions(hop.before, *numbers)
        return follow(sent, self._entering(hop.after, numbers), run.last_seen_ns - delay_ns)

    def hops_behind(self, queue: Queue) -> list[Hop]:
        """List the hops from a queue to hosts: its link's, if it is the last on the path."""
        return [h for h in self.hops if h.before == queue.interface and h.after not in self._queues]

    def _entering(self, interface: str, numbers: list[int]) -> Packets:
        """Select the packets of some directions that enter a queue or reach a host."""
        view = self._queues.get(interface)
        if view is None:
            return self._run.of_directions(interface, *numbers)
        rows, packets = view.lanes.rows(*numbers), view.passed.packets
        return packets.compute_later(lambda column: column[rows].astype(np.int64))

    def _hops(self) -> dict[Hop, list[int]]:
        """List the directions of each hop, from the times at which their packets enter queues."""
        entered: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for name, view in self._queues.items():
            order, ends = view.lanes.order, view.lanes.ends
            for number in np.flatnonzero(np.diff(ends)).tolist():
                first_ns = int(view.passed.packets.time_ns[order[ends[number]]])
                entered[number].append((first_ns, name))
        hops: dict[Hop, list[int]] = defaultdict(list)
        for number, (source, sink) in self._run.ends_of_directions.items():
            places = [source, *(name for _, name in sorted(entered[number])), sink]
            for pair in itertools.pairwise(places):
                hops[Hop(*pair)].append(number)
        return hops

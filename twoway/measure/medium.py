"""Half-duplex links in a run: when each end had the medium, from both captures."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from capture_analysis.columns import IntArray

from twoway.contract.network import Queue
from twoway.links.half_duplex import Medium, bits_ns
from twoway.measure.queues import STILL_QUEUED, Passage
from twoway.measure.run_folder import Run


@dataclass(frozen=True)
class Holds:
    """The times at which the packets of a queue should have had the medium.

    Attributes:
        rows: shape (n,), rows of the queue's passage: the packets that it did not drop.
        start_ns: shape (n,), the time at which their end got the medium, gap included.
        bits_ns: shape (n,), their transmission times.
        sent_ns: shape (n,), the time at which their last bits had been sent.
    """

    rows: IntArray
    start_ns: IntArray
    bits_ns: IntArray
    sent_ns: IntArray

    def error_ns(self, passed: Passage) -> IntArray:
        """Compute the lateness of each departure from the queue, in order of departure."""
        return passed.left_ns[passed.departures] - self._of_departures(passed, self.sent_ns)

    def bits_begin_ns(self, passed: Passage) -> IntArray:
        """Compute the time of each departure's first bit, in order of departure."""
        return self._of_departures(passed, self.sent_ns - self.bits_ns)

    def _of_departures(self, passed: Passage, value: IntArray) -> IntArray:
        by_row = np.zeros(len(passed.left_ns), dtype=np.int64)
        by_row[self.rows] = value
        return by_row[passed.departures]

    def held_ns(self, start_ns: int, stop_ns: int) -> int:
        """Compute the time for which the queue's packets had the medium between two times."""
        begins, ends = (np.clip(each, start_ns, stop_ns) for each in (self.start_ns, self.sent_ns))
        return int((ends - begins).sum())


def medium_of(run: Run) -> Medium | None:
    """Return the medium of a run's half-duplex links; None if it has none."""
    shared = run.manifest.profile.half_duplex
    return shared.medium if shared else None


def latest_ns(
    run: Run, queue: Queue, medium: Medium, begin_ns: IntArray, size: IntArray
) -> IntArray:
    """Compute the latest time at which packets at the head of a queue have been sent.

    Each packet waits for at most one turn of the other end.

    Args:
        run: the run.
        queue: the queue.
        medium: its medium.
        begin_ns: shape (n,), the time since which each packet has been at the head.
        size: shape (n,), sizes on the link.
    """
    other = _other_end(run, queue)
    largest = np.array([other.link_bytes(run.largest_frame_bytes)])
    turn_ns = medium.gap_ns + medium.turn_packets * int(bits_ns(largest, other.rate_bit)[0])
    return begin_ns + turn_ns + medium.gap_ns + bits_ns(size, queue.rate_bit)


def replay(run: Run, medium: Medium, passed: Mapping[str, Passage]) -> dict[str, Holds]:
    """Replay the media of a run.

    Args:
        run: the run.
        medium: the settings of each medium.
        passed: by direction, the packets offered to each queue.

    Returns: holds by direction.
    """
    found = {}
    nodes = {interface.name: interface.node for interface in run.manifest.interfaces}
    order = [*run.manifest.nodes.hosts, *run.manifest.nodes.routers]
    for queue in run.queues:
        # The queues join in the order in which their nodes are set up.
        ends = sorted(
            (queue, _other_end(run, queue)), key=lambda q: order.index(nodes[q.interface])
        )
        if queue != ends[0]:
            continue
        rows = [_in_order(passed[end.direction]) for end in ends]
        packets = [
            passed[end.direction].packets.where(mine) for end, mine in zip(ends, rows, strict=True)
        ]
        bits = [
            bits_ns(end.link_bytes(each.frame_bytes.astype(np.int64)), end.rate_bit)
            for end, each in zip(ends, packets, strict=True)
        ]
        holds = np.array([*medium.holds([p.time_ns for p in packets], bits)], dtype=np.int64)
        which, start_ns, sent_ns = holds.reshape(-1, 3).T
        for number, end in enumerate(ends):
            its = which == number
            found[end.direction] = Holds(rows[number], start_ns[its], bits[number], sent_ns[its])
    return found


def _in_order(passed: Passage) -> IntArray:
    """List the packets that a queue did not drop, in the order in which they get the medium."""
    waits = np.flatnonzero(passed.left_ns == STILL_QUEUED)
    return np.concatenate((passed.departures.astype(np.int64), waits))


def _other_end(run: Run, queue: Queue) -> Queue:
    """Return the queue at the other end of a queue's link."""
    peers = {interface.name: interface.peer for interface in run.manifest.interfaces}
    return next(each for each in run.queues if each.interface == peers[queue.interface])

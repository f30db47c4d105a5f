"""Queues of the simulated links: CoDel's drops, and fair queues with CoDel in each (FQ-CoDel)."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

CODEL_NS = 100_000_000
_QUANTUM = 1514


@dataclass
class Codel:
    """CoDel (RFC 8289, 5.5): it drops if all packets of an interval waited over target_ns."""

    target_ns: int
    above_ns: int = -1
    drop_ns: int = -1
    drops: int = 0

    def dropped(self, now_ns: int, waited_ns: int) -> bool:
        """Tell whether a packet that leaves the queue now is dropped."""
        if waited_ns < self.target_ns:
            self.above_ns = self.drop_ns = -1
            return False
        if self.above_ns < 0:
            self.above_ns = now_ns + CODEL_NS
        if now_ns < self.above_ns:
            return False
        if self.drop_ns < 0:  # start to drop; if dropping ended recently, nearly as fast as then
            self.drops = max(self.drops - 2, 1)
            self.drop_ns = now_ns
        elif now_ns < self.drop_ns:
            return False
        else:
            self.drops += 1
        self.drop_ns += round(CODEL_NS / self.drops**0.5)
        return True


@dataclass(frozen=True)
class Waiting:
    """A packet in a queue: time of entry, size, and the function to call when it leaves."""

    entered_ns: int
    frame: int
    left: Callable[[int | None], None]


@dataclass
class Queue:
    """The queue of one connection, with its credit in bytes."""

    codel: Codel
    credit: int = 0
    packets: deque[Waiting] = field(default_factory=deque)


class FairQueues:
    """A queue for each connection, served in turns of a frame (RFC 8290, without sparse flows).

    Args:
        target_ns: CoDel's target in each.
    """

    def __init__(self, target_ns: int) -> None:
        self._target_ns = target_ns
        self._turns: deque[int] = deque()
        self._queues: dict[int, Queue] = {}
        self.sends = False

    def add(self, number: int, packet: Waiting) -> None:
        """Take a connection's packet."""
        queue = self._queues.setdefault(number, Queue(Codel(self._target_ns)))
        if not queue.packets:
            queue.credit = _QUANTUM
            self._turns.append(number)
        queue.packets.append(packet)

    def next(self, now_ns: int) -> Waiting | None:
        """Remove and return the next packet to send; None if there is none."""
        while self._turns:
            queue = self._queues[self._turns[0]]
            if not queue.packets:
                self._turns.popleft()
            elif queue.credit <= 0:
                queue.credit += _QUANTUM
                self._turns.rotate(-1)
            else:
                packet = queue.packets.popleft()
                # The last packet of a queue is never dropped.
                waited_ns = now_ns - packet.entered_ns
                if queue.codel.dropped(now_ns, waited_ns) and queue.packets:
                    packet.left(None)
                    continue
                queue.credit -= packet.frame
                return packet
        return None

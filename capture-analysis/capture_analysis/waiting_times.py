"""Divide the time of each direction among the causes for which it waits; in C (clib/limits.c)."""

import ctypes

import numpy as np

from capture_analysis.columns import IntArray
from capture_analysis.facts.directions import Block
from capture_analysis.facts.native_block import Chains
from capture_analysis.facts.running_totals import LaneArray

# In the order of enum ca_cause in clib/limits.h. Away from the sender CONGESTION is a sender that
# holds back for any reason of its own.
APPLICATION, RECOVERY, RECEIVER, CONGESTION, ACKS, BUFFER, SHUT, PAUSE, NAGLE = range(9)
CAUSES = 9
# Length of struct ca_waits; of enum ca_open; and of struct ca_spent, in clib/limits.h.
_KEPT, _OPENS = 20, 7
_SPENT = CAUSES + _OPENS + 3
# Causes of enum ca_open if no data follow.
_AT_THE_END = APPLICATION, APPLICATION, RECEIVER, ACKS, SHUT, RECOVERY, APPLICATION
_IDLE = _OPENS - 1
PAUSE_NS = 1_000_000_000


class WaitingTimes:
    """Time by cause, of the directions that were captured at a known place."""

    def __init__(self) -> None:
        self._kept, self._spent = LaneArray(np.maximum, -1, _KEPT), LaneArray(np.add, 0, _SPENT)
        self._coming = Chains()  # ACKs between tap and sender

    def add(self, block: Block) -> None:
        """Take the next packets."""
        self._walk(block, None)

    def add_waits(self, block: Block) -> tuple[IntArray, IntArray]:
        """Take the next packets; return the time since the data before, and its main cause.

        Returns: two columns of shape (n,); packets other than data near their sender have a time of
            -1.
        """
        ns, cause = np.full(len(block.packets), -1), np.zeros(len(block.packets), dtype=np.int64)
        self._walk(block, _Waited(ns.ctypes.data, cause.ctypes.data))
        return ns, cause

    def _walk(self, block: Block, waited: "_Waited | None") -> None:
        directions = block.native.directions
        kept, spent = self._kept.address(directions), self._spent.address(directions)
        more = ctypes.byref(waited) if waited else None
        self._coming.add(block.native, "ca_limits_add", kept, spent, len(block.packets), more)

    def merge(self, other: "WaitingTimes") -> None:
        """Add the times of other connections."""
        self._spent.merge(other._spent)  # noqa: SLF001 - the same class

    def by_cause(self, direction: int) -> list[int]:
        """Return a direction's time by cause, ns; the causes divide all of its time."""
        *times, whole_ns, _, _ = (int(n) for n in self._spent.value_of(direction))
        spent, left = times[:CAUSES], times[CAUSES:]
        for each_ns, cause in zip(left, _AT_THE_END, strict=True):
            spent[cause] += each_ns
        if left[_IDLE] >= PAUSE_NS:
            spent[APPLICATION] -= left[_IDLE]
            spent[PAUSE] += left[_IDLE]
        assert sum(spent) == whole_ns
        return spent

    def timeouts(self, direction: int) -> int:
        """Count a direction's data that were sent again after 0.2 s of silence."""
        return int(self._spent.value_of(direction)[-2])

    def nagles(self, direction: int) -> int:
        """Count a direction's small data that waited for an ACK (Nagle's algorithm)."""
        return int(self._spent.value_of(direction)[-1])


class _Waited(ctypes.Structure):
    """Laid out as struct ca_waited in clib/limits.h."""

    _fields_ = [("ns", ctypes.c_void_p), ("cause", ctypes.c_void_p)]

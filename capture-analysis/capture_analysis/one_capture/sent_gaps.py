"""Time between ACKs when they were sent, by their time stamps."""

import numpy as np

from capture_analysis.columns import BoolArray, IntArray, Mark
from capture_analysis.one_capture.blocks import Block
from capture_analysis.one_capture.lanes import Previous

NO_TICKS = "no time stamps in the ACKs, or too few to know their tick"
_NO_STAMP = -1


class SentGaps:
    """Gaps of pure ACKs by the time stamps option, across blocks."""

    def __init__(self) -> None:
        self._stamps = Previous(_NO_STAMP)

    def of(self, block: Block) -> IntArray:
        """Compute the gaps of a block's ACKs when sent, ns; -1 if unknown."""
        acks = block.acks
        stamped: BoolArray = (acks["marks"] & Mark.TIMESTAMPS) != 0
        stamp = acks["ts_value"] * stamped - ~stamped  # _NO_STAMP where there is none
        before = self._stamps.of(acks.directions, acks.starts, stamp)
        ticks = (stamp - before).astype(np.int32)  # time stamps wrap modulo 2^32
        known = stamped & (before != _NO_STAMP) & (ticks >= 0)
        tick_ns = acks.spread(block.facts.tick_whole_ns)
        known &= tick_ns > 0
        return np.asarray(ticks * tick_ns * known - ~known)

"""Plateaus of a queue's square wave, high and low.

After Zhang et al. (1991), figures 8 and 9.
"""

import math

import numpy as np
from capture_analysis.columns import IntArray

from twoway.measure.analysis import Analysis, QueueView
from twoway.measure.metric import Scope
from twoway.measure.queues import Occupancy

SCOPE = Scope.QUEUE
UNITS = {
    "plateau_high": "packets",
    "plateau_low": "packets",
}
# Least length of a plateau, in transmissions of data: a queue that rises or falls stays within a
# packet for two.
LEAST_TRANSMISSIONS = 3


def measure(analysis: Analysis, view: QueueView) -> dict[str, float]:
    """Return medians of the plateaus above, and below, both neighbours."""
    run = analysis.run
    data = view.passed.packets.data().frame_bytes
    if not len(data):
        return dict.fromkeys(UNITS, math.nan)
    least_ns = LEAST_TRANSMISSIONS * int(view.queue.service_ns(int(data.max())))
    height = plateaus(view.all_packets.within(run.steady_ns, run.stop_ns), least_ns)
    before, here, after = height[:-2], height[1:-1], height[2:]
    high, low = (here > before) & (here > after), (here < before) & (here < after)
    return {
        "plateau_high": float(np.median(here[high])) if high.any() else math.nan,
        "plateau_low": float(np.median(here[low])) if low.any() else math.nan,
    }


def plateaus(levels: Occupancy, least_ns: int) -> IntArray:
    """Find plateaus, where a queue's length changes by one at most.

    Args:
        levels: the queue's length over time.
        least_ns: the least length of a plateau.

    Returns: shape (k,), the highest level of each plateau; equal neighbours count once.
    """
    heights: list[int] = []
    start = lowest = highest = 0
    length, time_ns = levels.packets.tolist(), levels.time_ns.tolist()
    for row, packets in enumerate(length):
        if row and max(highest, packets) - min(lowest, packets) <= 1:
            lowest, highest = min(lowest, packets), max(highest, packets)
            continue
        if row and time_ns[row] - time_ns[start] >= least_ns and heights[-1:] != [highest]:
            heights.append(highest)
        start, lowest, highest = row, packets, packets
    return np.array(heights, dtype=np.int64)

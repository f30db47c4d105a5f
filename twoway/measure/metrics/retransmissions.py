"""Retransmissions: number of segments sent again, their share, and the number sent again in vain.

    retransmitted = segments sent again / all segments sent

A retransmission is needless if its payload had arrived before it: the sender assumed a loss, but
the segment was late or the ACK was. The receiver reports each with a SACK block (RFC 2883), which
capture-analysis counts at the sender as `duplicates_told`. A copy that a link made does not count.
"""

import math

import numpy as np
from capture_analysis.columns import IntArray
from capture_analysis.definition import Definition
from capture_analysis.metrics.retransmissions import RETRANSMISSIONS, RETRANSMITTED
from capture_analysis.two_captures.matching import partners

from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metric import Scope, estimates

NEEDLESS = Definition(
    "retransmissions_needless", "1", "segments sent again whose whole payload had arrived before"
)


@estimates(Scope.CONNECTION, RETRANSMISSIONS, RETRANSMITTED, NEEDLESS)
def retransmissions(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Count segments sent again at the sender, needless ones at the receiver, in steady time."""
    run = analysis.run

    def steady(time_ns: IntArray) -> int:
        return int(np.count_nonzero((time_ns >= run.steady_ns) & (time_ns < run.stop_ns)))

    again, sent = steady(view.round_trips.again_ns), steady(view.sent.data().time_ns)
    arrived = view.segments_in
    old, key = view.brought == 0, arrived.key()
    # A copy that a link made is no retransmission: of equal packets only the first counts.
    first = partners(np.unique(key[old]), key)
    needless_ns = arrived.time_ns[first[old[first]]]
    return again, again / sent if sent else math.nan, steady(needless_ns)

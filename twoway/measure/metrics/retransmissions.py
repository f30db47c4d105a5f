"""Retransmissions: how many segments are sent again, which share that is, and how many in vain.

    retransmitted = segments sent again / all segments sent

A retransmission is needless if its payload had arrived before it: the sender took for lost what was
late, or was known to its receiver. The receiver tells of each with a SACK block (RFC 2883), which
capture-analysis counts at the sender as `duplicates_told`. A copy that a link made is none.
"""

import math

import numpy as np
from capture_analysis.columns import IntArray
from capture_analysis.definition import Definition
from capture_analysis.metrics.retransmissions import RETRANSMISSIONS, RETRANSMITTED

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope, estimates
from twoway.measure.throughput import new_payload

NEEDLESS = Definition(
    "retransmissions_needless",
    "1",
    "segments sent again, all of whose payload had arrived before them",
)


@estimates(Scope.CONNECTION, RETRANSMISSIONS, RETRANSMITTED, NEEDLESS)
def retransmissions(analysis: Analysis, view: ConnectionView) -> tuple[float, ...]:
    """Count at the sender, and what was needless at the receiver, in the steady window."""
    run = analysis.run

    def steady(time_ns: IntArray) -> int:
        return int(np.count_nonzero((time_ns >= run.steady_ns) & (time_ns < run.stop_ns)))

    again, sent = steady(view.round_trips.again_ns), steady(view.sent.data().time_ns)
    arrived = view.arrived.data()
    _, first = np.unique(arrived.key(), return_index=True)
    arrived = arrived.where(np.sort(first))
    needless = arrived.time_ns[new_payload(arrived) == 0]
    return again, again / sent if sent else math.nan, steady(needless)

"""The effective pipe: window neither queued nor transmitted as data.

    effective pipe = (propagation of data + time from ACK sent to ACK arrived) / transmission time

The transmission time is that of a data packet. ACKs that wait in a queue have the effect of a
longer pipe (Zhang et al. 1991, section 4.2). If none waits, the effective pipe is the paper's 2P
plus the transmission of an ACK.
"""

import math

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope

SCOPE = Scope.CONNECTION
UNITS = {
    "effective_pipe": "packets",
}


def measure(analysis: Analysis, view: ConnectionView) -> dict[str, float]:
    """Average over the ACKs of the steady window."""
    del analysis
    back_ns = view.acks.arrived_ns - view.acks.sent_ns
    if not len(back_ns) or not view.data_service_ns:
        return {"effective_pipe": math.nan}
    trip_ns = view.forward.queue.delay_ns + float(back_ns.mean())
    return {"effective_pipe": trip_ns / view.data_service_ns}

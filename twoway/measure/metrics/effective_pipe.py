"""The effective pipe: what of a connection's window is neither queued nor transmitted as data.

    effective pipe = (data's propagation + acknowledgement's way back) / data's transmission time

Waiting of acknowledgements has the effect of a longer pipe (Zhang et al. 1991, section 4.2).
Without it this is their 2P, and an acknowledgement's transmission.
"""

import math

from twoway.measure.analysis import Analysis, ConnectionView
from twoway.measure.metric import Scope

SCOPE = Scope.CONNECTION
UNITS = {
    "effective_pipe": "packets",
}


def measure(analysis: Analysis, view: ConnectionView) -> dict[str, float]:
    """Mean over the acknowledgements of the steady window."""
    del analysis
    back_ns = view.acks.arrived_ns - view.acks.sent_ns
    if not len(back_ns) or not view.data_service_ns:
        return {"effective_pipe": math.nan}
    trip_ns = view.forward.queue.delay_ns + float(back_ns.mean())
    return {"effective_pipe": trip_ns / view.data_service_ns}

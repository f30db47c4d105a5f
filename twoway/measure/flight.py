"""How much of a connection is on its way."""

import numpy as np

from twoway.measure.analysis import ConnectionView
from twoway.measure.run_folder import Run


def most_in_flight(run: Run, view: ConnectionView) -> int | None:
    """Most segments from the oldest unacknowledged to the newest sent, in the steady window.

    None if no data were sent in it, or no ACK came before any.
    """
    data = run.steady(view.sent.data())
    acks = run.between(view.connection.source_interface, view.connection, forward=False)
    before = np.searchsorted(acks.time_ns, data.time_ns, side="right") - 1
    known = before >= 0
    if not known.any():
        return None
    span = (data.seq[known] + data.payload_bytes[known] - acks.ack[before[known]]) % (1 << 32)
    return int(-(-span.max() // data.payload_bytes.max()))

"""The flight of a connection: data sent and not yet acknowledged."""

import numpy as np

from twoway.measure.analysis import ConnectionView
from twoway.measure.run_folder import Run


def most_in_flight(run: Run, view: ConnectionView) -> int | None:
    """Compute the largest flight in the steady window, in full segments.

    The flight is the span from the oldest unacknowledged to the newest sent byte.

    Returns: None if no data was sent in the window, or none after an ACK.
    """
    data = run.steady(view.sent.data())
    acks = run.between(view.connection.source_interface, view.connection, forward=False)
    before = np.searchsorted(acks.time_ns, data.time_ns, side="right") - 1
    known = before >= 0
    if not known.any():
        return None
    span = (data.seq[known] + data.payload_bytes[known] - acks.ack[before[known]]) % (1 << 32)
    return int(-(-span.max() // data.payload_bytes.max()))

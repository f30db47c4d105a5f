"""The flight of a connection: data sent and not yet acknowledged."""

import numpy as np
from capture_analysis.columns import IntArray, Packets

from twoway.measure.connection_view import ConnectionView
from twoway.measure.run_folder import Run


def flights(run: Run, view: ConnectionView) -> tuple[IntArray, IntArray, int]:
    """Compute the flight when each segment of the steady window was sent.

    The flight is the span from the oldest unacknowledged to the newest sent byte. Segments before
    the first ACK are left out.

    Returns: times in ns, flights in bytes, and the payload of a full segment; empty arrays and 0 if
        no data was sent.
    """
    data = run.select_steady(view.sent.data())
    acks = run.packets_between(view.connection.source_interface, view.connection, forward=False)
    before = np.searchsorted(acks.time_ns, data.time_ns, side="right") - 1
    known = before >= 0
    span = (data.seq[known] + data.payload_bytes[known] - acks.ack[before[known]]) % (1 << 32)
    return data.time_ns[known], span, int(data.payload_bytes.max(initial=0))


def most_in_flight(run: Run, view: ConnectionView) -> int | None:
    """Compute the largest flight in the steady window, in full segments.

    Returns: None if no data was sent in the window, or none after an ACK.
    """
    _, span, full = flights(run, view)
    return int(-(-span.max() // full)) if len(span) else None


def window_at_first(lost: Packets, run: Run, view: ConnectionView) -> int | None:
    """Compute the flight when the first of some lost segments was sent, in full segments.

    Args:
        lost: at least one lost segment, in time order.
        run: the run, for ACKs at the sender.
        view: the connection.

    Returns: None if no ACK came before, or the sender's capture does not have the segment.
    """
    data = view.sent.data()
    sent_ns = data.time_ns[(data.seq == lost.seq[0]) & (data.time_ns <= lost.time_ns[0])]
    if not len(sent_ns):
        return None
    acks = run.packets_between(view.connection.source_interface, view.connection, forward=False)
    before = int(np.searchsorted(acks.time_ns, sent_ns[-1], side="right")) - 1
    if before < 0:
        return None
    span = (int(lost.seq[0]) + int(lost.payload_bytes[0]) - int(acks.ack[before])) % (1 << 32)
    return int(-(-span // int(data.payload_bytes.max())))

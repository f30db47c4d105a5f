"""Segments sent again, and those sent again in vain."""

from packet_columns import packets
from support.column_run import Ends, analysis_of

from twoway.measure.metrics.retransmissions import retransmissions


def test_copies_by_a_link_are_no_retransmissions() -> None:
    """A segment is needless if its payload had arrived; copies by a link never count.

    The first segment arrives twice because of the link, and once more because it was sent again,
    and the link copies that one, too.
    """
    arrived = packets(
        time_ns=[10, 11, 20, 30, 31],
        seq=[1, 1, 101, 1, 1],
        ip_id=[1, 1, 2, 3, 3],
        payload_bytes=[100] * 5,
    )
    sent = packets(time_ns=[0, 1, 2], seq=[1, 101, 1], ip_id=[1, 2, 3], payload_bytes=[100] * 3)
    analysis = analysis_of(Ends(sent=sent, arrived=arrived), stop_ns=100)
    found = retransmissions.measure(analysis, analysis.connections["0"])
    assert tuple(found) == (1, 1 / 3, 1)

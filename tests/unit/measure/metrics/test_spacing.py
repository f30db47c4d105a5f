"""Compressed ACKs at the limits of the definition."""

import numpy as np
from packet_columns import packets
from support.column_run import Ends, analysis_of

from twoway.measure.metrics.acks import spacing


def test_compressed_is_below_three_quarters() -> None:
    """Gaps of 74 and 0 ns on arrival, from 100 ns, are compressed; 75, 100 and -1 are not."""
    arrived_ns = np.cumsum([1000, 74, 75, 0, 100, -1]).tolist()
    sent = packets(time_ns=range(0, 600, 100), ack=range(6))
    analysis = analysis_of(Ends(acks_out=sent, acks_in=packets(time_ns=arrived_ns, ack=range(6))))
    assert spacing.measure(analysis, analysis.connections["0"]) == (0.74, 2 / 5)

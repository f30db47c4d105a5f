"""Epochs of drops: their number, size and spacing, and a connection's part."""

from dataclasses import replace

import numpy as np
import pytest
from capture_analysis.columns import Packets
from packet_columns import packets
from support.column_run import Ends, analysis_of, queue_view
from support.queue_columns import passage_of, queue_of

from twoway.measure.analysis import Analysis
from twoway.measure.metrics.congestion_epochs import epoch_losses, queue_epochs

# Drop times in ns, two of them of ACKs: with a round trip of 10 ns, epochs of 3, 2 and 1.
DROPS = packets(time_ns=[0, 4, 10, 30, 36, 100], payload_bytes=[9, 0, 9, 9, 0, 9])


def _analysis(drops: Packets) -> Analysis:
    """Make a run with these drops, whose longest round trip is 10 ns."""
    dropped = replace(passage_of([], []), packets=drops, left_ns=np.full(len(drops), -1))
    view = queue_view(dropped, queue_of(delay_ns=10, limit_packets=0))
    return analysis_of(Ends(), queues={"forward": view})


def test_epochs_of_a_queue() -> None:
    """Three epochs have 2 drops and 2/3 of an ACK on average; half the gap makes five epochs."""
    analysis = _analysis(DROPS)
    found = queue_epochs.measure(analysis, analysis.queues["forward"])
    assert found == pytest.approx((3, 2, 2 / 3, 6 / 5, 50e-9), rel=1e-12)


def test_losses_in_an_epoch() -> None:
    """Four lost data packets in three epochs are 4/3 per epoch."""
    analysis = _analysis(DROPS)
    found = epoch_losses.measure(analysis, analysis.connections["0"])
    assert found == pytest.approx((4 / 3,), rel=1e-12)


def test_no_drops_no_epochs() -> None:
    """Without drops there are no epochs, and the other metrics are undefined."""
    nothing = _analysis(packets(time_ns=[]))
    count, *others = queue_epochs.measure(nothing, nothing.queues["forward"])
    assert count == 0
    assert np.isnan(others).all()
    assert np.isnan(epoch_losses.measure(nothing, nothing.connections["0"])).all()

"""Epochs of drops: how many, how large, how far apart, and what of it is a connection's."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from capture_analysis.columns import Packets
from capture_analysis.congestion_epochs import CongestionEpochs, congestion_epochs
from packet_columns import packets

from twoway.measure.metrics.congestion_epochs import epoch_losses, queue_epochs

# Drops in ns, of which two are ACKs: with a round trip of 10 ns three epochs, of 3, 2 and 1.
DROPS = packets(time_ns=[0, 4, 10, 30, 36, 100], payload_bytes=[9, 0, 9, 9, 0, 9])


def _analysis(drops: Packets) -> Any:
    def epochs(_: Any, gap_ns: int) -> CongestionEpochs:
        return congestion_epochs(drops.time_ns, np.zeros(len(drops), dtype=np.int64), gap_ns)

    return SimpleNamespace(
        longest_round_trip_ns=10,
        queue_epochs=epochs,
        congestion_epochs=epochs(None, 10),
        drops=lambda _: drops,
        lost=lambda _: drops.data(),
        run=SimpleNamespace(steady=lambda each: each),
    )


def test_epochs_of_a_queue() -> None:
    """Three epochs of two drops, two thirds of an ACK in each, five with half the gap, 50 ns."""
    found = queue_epochs.measure(_analysis(DROPS), None)
    assert found == pytest.approx((3, 2, 2 / 3, 6 / 5, 50e-9), rel=1e-12)


def test_losses_in_an_epoch() -> None:
    """Four lost data packets in three epochs are 4/3 in each."""
    assert epoch_losses.measure(_analysis(DROPS), None) == pytest.approx((4 / 3,), rel=1e-12)


def test_no_drops_no_epochs() -> None:
    """Without drops there are no epochs, and nothing to say of one."""
    nothing = _analysis(packets(time_ns=[]))
    count, *others = queue_epochs.measure(nothing, None)
    assert count == 0
    assert np.isnan([*others, *epoch_losses.measure(nothing, None)]).all()

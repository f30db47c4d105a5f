"""Reordering, delayed ACKs and reads, near the receiver of simulated paths."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from capture_analysis.flow_table import Seen
from capture_analysis.metrics.receiving import NOT_NEAR_RECEIVER
from capture_analysis.metrics.transfer_limits import NO_SCALE_SEEN
from capture_analysis.one_capture import single
from capture_analysis.one_capture.single import measure
from capture_analysis.one_capture.trouble import receiver_sentence, receiver_words
from capture_analysis.tracking import Kind, Tracker
from measured_captures import values
from simulated_path import Connection, Link, Place, Simulation


def simulated(place: Place = "far", link: Link | None = None, **settings: Any) -> Simulation:
    """Simulate a transfer over 10 Mbit/s and 20 ms."""
    links = link or Link(1e7, 5_000_000, 5_000_000), Link(1e8, 5_000_000, 5_000_000)
    transfer = Connection(**{"window": 20, "announced": 1000} | settings)
    return Simulation(links, [transfer], place).run()


def said(simulation: Simulation) -> SimpleNamespace:
    """Return the metrics of the transfer's data."""
    return values(measure(simulation.captured()), 0)


def late_by_loss(simulation: Simulation) -> list[int]:
    """Count the late segments that were dropped before, and those that were not."""
    capture = simulation.captured()
    late = Tracker().track(capture.whole, capture.flows).kind == Kind.LATE_DATA
    lost = [(0, int(seq)) in simulation.dropped for seq in capture.whole.seq[late]]
    return [len(lost) - sum(lost), sum(lost)]


@pytest.mark.parametrize(("overtaken", "loss"), [(0.02, 0), (0, 0.02), (0.02, 0.02)])
def test_reordering_and_losses_are_told_apart(overtaken: float, loss: float) -> None:
    """Late segments that were not lost are reordered, the others were sent again."""
    link = Link(1e7, 5_000_000, 5_000_000, loss=loss, overtaken=overtaken)
    simulation = simulated(link=link, segments=3000)
    found = said(simulation)
    counts = [found.reordered_segments, found.repaired_segments]
    assert counts == late_by_loss(simulation)
    assert [count > 10 for count in counts] == [overtaken > 0, loss > 0]
    assert sum(counts) == found.late_segments


def test_delayed_acks() -> None:
    """The share of ACKs that the receiver's timer of 40 ms sends is exact."""
    for simulation in (
        simulated(every=2),
        simulated(every=2, window=7),
        simulated(every=2, write_ns=90_000_000),
    ):
        acks = len(simulation.truth(0).sent_ns) - 1  # without the handshake's
        late = simulation.connections[0].late_acks
        assert said(simulation).acks_delayed == pytest.approx(late / acks, abs=2 / acks)
    assert late / acks > 0.9
    assert said(simulated(every=1)).acks_delayed == 0


def test_reads() -> None:
    """Each read of a slow application that opens the window counts, and unread bytes are known."""
    simulation = simulated(announced=10, reads_ns=50_000_000, reads=4)
    found, transfer = said(simulation), simulation.connections[0]
    assert transfer.opened > 100
    assert found.application_reads == transfer.opened
    # The first announced window is already without the first segment.
    most = (transfer.most_unread - 1) * transfer.payload
    assert found.unread_max == pytest.approx(most, abs=512)
    assert found.window_shut > 0.3
    quick = said(simulated(announced=10))
    assert quick.application_reads == quick.unread_max == quick.window_shut == 0


@pytest.mark.parametrize(
    ("simulation", "words", "said_of_it"),
    [
        ({"link": Link(1e7, 5_000_000, 5_000_000, loss=0.02)}, "lost 16", "16 segments were lost"),
        ({"link": Link(1e7, 5_000_000, 5_000_000, overtaken=0.02)}, "reordered", "overtaken by"),
        ({"every": 2, "write_ns": 90_000_000}, "delayed 100%", "of the ACKs were delayed by 10 ms"),
        ({"announced": 10, "reads_ns": 50_000_000, "reads": 4}, "shut", "reads of its application"),
        ({}, "nothing", "no segment was lost before the tap or came out of order, and few ACKs"),
    ],
)
def test_findings_in_words(simulation: dict[str, Any], words: str, said_of_it: str) -> None:
    """The table and the page's sentence have the findings at the receiver in words."""
    found = vars(said(simulated(**simulation)))
    assert receiver_words(found).startswith(words)
    assert said_of_it in receiver_sentence(found)
    elsewhere = vars(said(simulated("near", **simulation)))
    assert (receiver_words(elsewhere), receiver_sentence(elsewhere)) == ("-", "")


def test_time_that_runs_back() -> None:
    """If a capture's time runs back, no time counts twice."""
    simulation = simulated(announced=10, reads_ns=50_000_000, reads=4)
    capture, expected = simulation.captured(), said(simulation).window_shut
    capture.whole.time_ns[len(capture.whole) // 2 :: 100] -= 10**9
    assert values(measure(capture), 0).window_shut == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("packets", [1, 7, 100])
def test_blocks_do_not_matter(packets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever blocks end, the numbers are the same."""
    link = Link(1e7, 5_000_000, 5_000_000, loss=0.02, overtaken=0.02)
    simulation = simulated(link=link, announced=10, reads_ns=50_000_000, reads=4, segments=150)
    names = ("reordered_segments", "repaired_segments", "application_reads", "window_shut")
    expected = [getattr(said(simulation), name) for name in names]
    assert np.all(np.array(expected) > 0)
    monkeypatch.setattr(single, "BLOCK_PACKETS", packets)
    assert [getattr(said(simulation), name) for name in names] == expected


def test_what_cannot_be_told() -> None:
    """Far from the receiver, or without a known window scale, the metric has a reason instead."""
    for place in ("near", "middle"):
        assert said(simulated(place)).acks_delayed == NOT_NEAR_RECEIVER
    capture = simulated().captured()
    capture.flows.rows["seen"] &= 3 * Seen.HALF
    found = values(measure(capture), 0)
    assert found.unread_max == found.window_shut == NO_SCALE_SEEN
    assert found.reordered_segments == 0

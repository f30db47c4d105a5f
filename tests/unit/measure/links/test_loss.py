"""Losses on a link, and their deviation from the profile's."""

import math
from typing import Any

import numpy as np
import pytest
from conversation import packets
from support.column_run import STOP_NS, Ends, analysis_of

from twoway.contract.judge import Verdict
from twoway.contract.metrics import FidelityRow
from twoway.links.loss import Loss
from twoway.measure.links.loss import check, deviations, link_loss


def test_single_losses() -> None:
    """110 losses of 10 000 packets, with 100 expected, are one standard deviation above."""
    alone = Loss(percent=1)
    share, length = deviations(alone, 0.011, 10_000, 1 / 0.99, 100)
    assert share == pytest.approx(0.001 / math.sqrt(0.01 * 0.99 / 10_000))
    assert length == 0


def test_bursts_widen_the_deviation() -> None:
    """The deviations of the share and of the bursts' length follow from their mean length, 8."""
    bursts = Loss(percent=1, burst_packets=8)
    share, length = deviations(bursts, 0.011, 10_000, 9.5, 25)
    correlated = 1 - 1 / 8 - 0.01 / 0.99 / 8
    widened = math.sqrt((1 + correlated) / (1 - correlated))
    assert widened == pytest.approx(3.85, abs=0.01)
    assert share == pytest.approx(0.001 / math.sqrt(0.01 * 0.99 / 10_000) / widened)
    assert length == pytest.approx(1.5 / math.sqrt(8 * 7 / 25))


def test_no_losses() -> None:
    """Without a burst no length can be compared."""
    assert math.isnan(deviations(Loss(percent=1, burst_packets=8), 0, 100, math.nan, 0)[1])
    assert all(map(math.isnan, deviations(Loss(percent=100), 1, 100, 100, 1)))


def _measured(
    lost: list[bool],
    *,
    said: dict[str, Any] | None = None,
    payload: list[int] | None = None,
    under_way: int = 0,
) -> tuple[float, ...]:
    """Return the metrics of packets, some lost; the last may still be under way."""
    rows = range(len(lost))
    behind = packets(time_ns=rows, seq=rows, payload_bytes=payload or [1] * len(lost))
    arrived = behind.where(np.flatnonzero(~np.array(lost)))
    # Captures end with a packet of another connection, later than the packets under way.
    last = packets(time_ns=[len(lost) - under_way])
    links: dict[str, dict[str, Any]] = {
        "forward": {"loss": said},
        "reverse": {"loss": {"percent": 1}},
    }
    analysis = analysis_of(Ends(behind=behind, arrived=arrived), Ends(arrived=last), links=links)
    return tuple(link_loss.measure(analysis, analysis.connections["0"]))


def test_bursts_are_counted_from_their_first() -> None:
    """Losses of 1, 0, 1, 1, 0, 0 are half of the packets, in two bursts of mean length 1.5."""
    found = _measured([True, False, True, True, False, False])
    assert found[:2] == (0.5, 1.5)
    assert np.isnan(found[2:]).all()
    assert _measured([False, True, True, True])[:2] == (0.75, 3)


def test_only_data_that_had_its_time_counts() -> None:
    """An ACK, and a packet still under way at the captures' end, count as neither sent nor lost."""
    found = _measured([True, False, True, True, True], payload=[9, 9, 9, 0, 9], under_way=1)
    assert found[:2] == (2 / 3, 1)
    assert np.isnan(_measured([True], payload=[0])).all()
    share, length, *_ = _measured([False, False])
    assert share == 0
    assert math.isnan(length)


def test_losses_are_compared_with_the_profile() -> None:
    """If the profile gives numbers, the deviations are from its share and its bursts."""
    said = {"percent": 25, "burst_packets": 2}
    found = _measured([True, False, True, True], said=said)
    assert found[2:] == deviations(Loss(percent=25, burst_packets=2), 0.75, 4, 1.5, 2)


def _checked(
    said: dict[str, Any], time_ms: list[int], lost: list[int], seen_ms: int | None = None
) -> list[FidelityRow]:
    """Check packets that left a queue at some times, with some that did not arrive."""
    rows = range(len(time_ms))
    behind = packets(
        time_ns=[ms * 10**6 for ms in time_ms], seq=rows, payload_bytes=[1] * len(rows)
    )
    arrived = behind.where(np.array([row for row in rows if row not in lost], dtype=np.int64))
    last = packets(time_ns=[10**6 * (max(time_ms) + 1 if seen_ms is None else seen_ms)])
    links: dict[str, dict[str, Any]] = {"forward": {"loss": said}, "reverse": {}}
    analysis = analysis_of(Ends(behind=behind, arrived=arrived), Ends(arrived=last), links=links)
    return check(analysis, "forward", analysis.queues["forward"], None)


def test_losses_by_count_are_the_packets_that_the_count_names() -> None:
    """With `every: 3` each third packet is lost or under way; other losses contradict it.

    Three wrong losses are six contradictions: three packets lost, three not lost.
    """
    (row,) = _checked({"every": 3}, [*range(9)], [2, 5, 8])
    assert row.check == "forward: packets of 9 whose loss contradicts the count"
    assert (row.value, row.verdict) == (0, Verdict.PASS)
    (row,) = _checked({"every": 3}, [*range(9)], [0, 3, 6])
    assert (row.value, row.verdict) == (6, Verdict.FAIL)
    (row,) = _checked({"every": 3}, [*range(9)], [2, 5])
    assert (row.value, row.verdict) == (1, Verdict.FAIL)
    (row,) = _checked({"every": 3}, [*range(9)], [2, 5, 8], seen_ms=8)
    assert row.check == "forward: packets of 8 whose loss contradicts the count"
    assert row.value == 0
    assert _checked({"percent": 3}, [*range(9)], []) == []


def test_losses_by_schedule_have_the_chances_of_its_shares() -> None:
    """A loss that the schedule's share excludes fails; within 1 ms of a change none is judged."""
    said = {"schedule": [[0, 0], [1, 100], [2, 50]]}
    times = [500, 999, 1000, 1001, 1500, 2000, 2001, 2500, STOP_NS // 10**6]
    (row,) = _checked(said, times, [3, 4, 6])
    assert row.check == (
        "forward: lowest probability of the losses seen, of packets: 2 at 0 %, 2 at 50 "
        "%, 2 at 100 %"
    )
    assert (row.value, row.verdict) == (1, Verdict.PASS)
    (row,) = _checked(said, times, [0, 3, 4, 6])
    assert (row.value, row.verdict) == (0, Verdict.FAIL)
    for lost in ([3, 4, 6, 7], [3, 4]):
        (row,) = _checked(said, times, lost)
        assert row.value == pytest.approx(1 / 4)
    (row,) = _checked(said, [1000], [0])
    assert (row.value, row.verdict) == (1, Verdict.PASS)

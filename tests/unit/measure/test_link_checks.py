"""Fidelity checks and metrics of links' elements, on packets made by hand."""

import math
import typing
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from capture_analysis.discovery import modules_of
from conversation import packets
from support.column_run import STOP_NS, Ends, analysis_of, queue_view
from support.queue_columns import passage_of, queue_of

from twoway.contract.judge import Verdict
from twoway.contract.metrics import FidelityRow
from twoway.contract.network import START_NS
from twoway.links.loss import Loss
from twoway.measure import links
from twoway.measure.checks import QueueCheck, RunCheck, checks_of_links
from twoway.measure.links.delay import check
from twoway.measure.links.impairments import link_impairments
from twoway.measure.links.loss import check as loss_check
from twoway.measure.links.loss import deviations, link_loss
from twoway.measure.links.policer import check as policer_check
from twoway.measure.links.policer import policed_share
from twoway.measure.real_time import ClockError

# Fidelity checks of elements are found by their type, not by their name.


@pytest.mark.parametrize("module", modules_of(links), ids=lambda module: module.__name__)
def test_a_function_that_returns_rows_is_a_check(module: object) -> None:
    """No public function of an element's file returns fidelity rows without being a check."""
    functions = [each for each in vars(module).values() if isinstance(each, FunctionType)]
    returns = {each.__name__: typing.get_type_hints(each).get("return") for each in functions}
    rows = [name for name, kind in returns.items() if kind == list[FidelityRow]]
    assert [name for name in rows if not name.startswith("_")] == []


def test_each_element_with_a_check_is_found() -> None:
    """The checks of queues and of runs are found in the order of the elements' files."""
    queues = [each.rows.__module__.rpartition(".")[2] for each in checks_of_links(QueueCheck)]
    runs = [each.rows.__module__.rpartition(".")[2] for each in checks_of_links(RunCheck)]
    assert queues == sorted(queues)
    assert {"delay", "loss", "policer"} <= set(queues)
    assert "loss" in runs


# The check of a link whose delay changes, on packets made by hand.

MS = 1_000_000
# 10 ms for a second, then 20 ms.
LINKS = {"forward": {"delay": {"schedule": [[0, 10], [1, 20]], "repeat_s": None}}}


def _worst(travelled_ns: list[int], connections: int = 1) -> FidelityRow:
    """Check packets sent each half second with given delays; -1 means that it is lost."""
    sent_ns = [START_NS + row * 500 * MS for row in range(len(travelled_ns))]
    behind = packets(time_ns=sent_ns, seq=range(len(sent_ns)))
    came = [row for row, took_ns in enumerate(travelled_ns) if took_ns >= 0]
    arrived = packets(time_ns=[sent_ns[row] + travelled_ns[row] for row in came], seq=came)
    ends = [Ends(behind=behind, arrived=arrived)] * connections
    analysis = analysis_of(*ends, queues={"forward": queue_view()}, links=LINKS)
    (row,) = check(analysis, "forward", analysis.queues["forward"], None)
    return row


def test_packets_travel_for_as_long_as_the_table_says() -> None:
    """A packet has the delay of its departure's time; a lost packet has no delay."""
    sound = _worst([10 * MS, 10 * MS, 20 * MS, -1])
    assert sound.check == "forward: worst error of the delays of 3 packets, ns"
    assert (sound.value, sound.bound, sound.verdict) == (0, "0", Verdict.PASS)
    assert _worst([10 * MS] * 2, connections=2).check == (
        "forward: worst error of the delays of 4 packets, ns"
    )


def test_a_nanosecond_off_fails() -> None:
    """A packet that arrives 1 ns early or late fails the check with an error of 1 ns."""
    for off_ns in (-1, 1):
        found = _worst([10 * MS, 10 * MS + off_ns])
        assert (found.value, found.verdict) == (1, Verdict.FAIL)


def test_no_packet_is_off() -> None:
    """A link without departures has no wrong delay; a constant delay has no check."""
    for connections in (0, 1):
        nothing = _worst([], connections)
        assert nothing.check == "forward: worst error of the delays of 0 packets, ns"
        assert (nothing.value, nothing.verdict) == (0, Verdict.PASS)
    assert check(analysis_of(), "forward", queue_view(), None) == []


# Jitter, overtaking and copies on a link, of packets made by hand.


def _measured(
    came_ms: list[int], payload: list[int], arrivals: int, *, impaired: bool = True
) -> tuple[float, ...]:
    """Return the metrics of packets that left their last queue one millisecond apart."""
    rows = range(len(came_ms))
    behind = packets(time_ns=[row * MS for row in rows], seq=rows, payload_bytes=payload)
    came = [row for row in rows if came_ms[row] >= 0]
    copies = [came[0]] * (arrivals - len(came))
    time_ns = [came_ms[row] * MS for row in came] + [max(came_ms) * MS] * len(copies)
    again = [*came, *copies]
    arrived = packets(time_ns=time_ns, seq=again, payload_bytes=[payload[row] for row in again])
    order = np.argsort(arrived.time_ns, kind="stable")
    directions = {"directions": ["first", "last"], "direction": "last"}
    mine = Ends(behind=behind, arrived=arrived.where(order), fields=directions)
    links = {"last": {"impairments": {"jitter_ms": 1} if impaired else None}}
    analysis = analysis_of(mine, links=links)
    return tuple(link_impairments.measure(analysis, analysis.connections["0"]))


def test_each_impairment_by_hand() -> None:
    """A packet with 9 ms of delay overtakes ones with 10 and 12; losses and ACKs do not count."""
    jitter, overtaking, copies = _measured([10, 13, -1, 15, 12], [1, 1, 1, 0, 0], 6)
    assert jitter == pytest.approx(1, rel=1e-12)
    assert overtaking == 0
    assert copies == 2 / 5
    jitter, overtaking, _ = _measured([10, 13, -1, 11, 12], [1, 1, 1, 0, 1], 4)
    assert jitter == pytest.approx(math.sqrt((0 + 4 + 4) / 3), rel=1e-12)
    assert overtaking == 1 / 3


def test_arrival_with_another_overtakes_nothing() -> None:
    """Two data packets that arrive at once, in their order, have no overtaking; time 0 is valid."""
    jitter, overtaking, copies = _measured([0, 3, 3], [1, 1, 1], 3)
    assert jitter == pytest.approx(math.sqrt(2 / 3), rel=1e-12)  # deviation of 0, 2 and 1 ms
    assert (overtaking, copies) == (0, 0)


def test_no_data_no_impairment() -> None:
    """The metrics are undefined if no data packet arrives, or a link has no impairments."""
    assert np.isnan(_measured([-1, 5], [1, 0], 1)).all()
    assert np.isnan(_measured([10, 5], [1, 1], 3, impaired=False)).all()


# Losses on a link, and their deviation from the profile's.


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


def _lossy(
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
    found = _lossy([True, False, True, True, False, False])
    assert found[:2] == (0.5, 1.5)
    assert np.isnan(found[2:]).all()
    assert _lossy([False, True, True, True])[:2] == (0.75, 3)


def test_only_data_that_had_its_time_counts() -> None:
    """An ACK, and a packet still under way at the captures' end, count as neither sent nor lost."""
    found = _lossy([True, False, True, True, True], payload=[9, 9, 9, 0, 9], under_way=1)
    assert found[:2] == (2 / 3, 1)
    assert np.isnan(_lossy([True], payload=[0])).all()
    share, length, *_ = _lossy([False, False])
    assert share == 0
    assert math.isnan(length)


def test_losses_are_compared_with_the_profile() -> None:
    """If the profile gives numbers, the deviations are from its share and its bursts."""
    said = {"percent": 25, "burst_packets": 2}
    found = _lossy([True, False, True, True], said=said)
    assert found[2:] == deviations(Loss(percent=25, burst_packets=2), 0.75, 4, 1.5, 2)


def _losses_of(
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
    return loss_check(analysis, "forward", analysis.queues["forward"], None)


def test_losses_by_count_are_the_packets_that_the_count_names() -> None:
    """With `every: 3` each third packet is lost or under way; other losses contradict it.

    Three wrong losses are six contradictions: three packets lost, three not lost.
    """
    (row,) = _losses_of({"every": 3}, [*range(9)], [2, 5, 8])
    assert row.check == "forward: packets of 9 whose loss contradicts the count"
    assert (row.value, row.verdict) == (0, Verdict.PASS)
    (row,) = _losses_of({"every": 3}, [*range(9)], [0, 3, 6])
    assert (row.value, row.verdict) == (6, Verdict.FAIL)
    (row,) = _losses_of({"every": 3}, [*range(9)], [2, 5])
    assert (row.value, row.verdict) == (1, Verdict.FAIL)
    (row,) = _losses_of({"every": 3}, [*range(9)], [2, 5, 8], seen_ms=8)
    assert row.check == "forward: packets of 8 whose loss contradicts the count"
    assert row.value == 0
    assert _losses_of({"percent": 3}, [*range(9)], []) == []


def test_losses_by_schedule_have_the_chances_of_its_shares() -> None:
    """A loss that the schedule's share excludes fails; within 1 ms of a change none is judged."""
    said = {"schedule": [[0, 0], [1, 100], [2, 50]]}
    times = [500, 999, 1000, 1001, 1500, 2000, 2001, 2500, STOP_NS // 10**6]
    (row,) = _losses_of(said, times, [3, 4, 6])
    assert row.check == (
        "forward: lowest probability of the losses seen, of packets: 2 at 0 %, 2 at 50 "
        "%, 2 at 100 %"
    )
    assert (row.value, row.verdict) == (1, Verdict.PASS)
    (row,) = _losses_of(said, times, [0, 3, 4, 6])
    assert (row.value, row.verdict) == (0, Verdict.FAIL)
    for lost in ([3, 4, 6, 7], [3, 4]):
        (row,) = _losses_of(said, times, lost)
        assert row.value == pytest.approx(1 / 4)
    (row,) = _losses_of(said, [1000], [0])
    assert (row.value, row.verdict) == (1, Verdict.PASS)


# The refusals of a policer.


# 8 Mbit/s: a byte takes a microsecond, and the bucket holds two frames of 1000.
POLICER: dict[str, float] = {"rate_mbit": 8, "burst_bytes": 2000}


def _share(steady_ns: int, stop_ns: int, policer: dict[str, float] | None = POLICER) -> float:
    """Return the share lost of four frames at once, two without a departure, and one later."""
    entered = [0, 0, 0, 0, 5 * MS]
    view = queue_view(passage_of(entered, [MS, 2 * MS, -1, -1, 6 * MS], frame_bytes=[1000] * 5))
    links = {"forward": {"policer": policer}}
    analysis = analysis_of(links=links, steady_ns=steady_ns, stop_ns=stop_ns)
    (found,) = policed_share.measure(analysis, view)
    return found


def test_share_of_what_comes_in_the_steady_window() -> None:
    """The policer refuses two of four simultaneous packets; the steady window is half open."""
    assert _share(0, 6 * MS) == 2 / 5
    assert _share(0, 5 * MS) == 2 / 4
    assert _share(1, 6 * MS) == 0
    assert _share(5 * MS, 6 * MS) == 0
    assert math.isnan(_share(1, 5 * MS))


def test_a_drop_at_a_full_queue_is_not_the_policers() -> None:
    """A packet lost while the queue is full is the queue's drop, not the policer's."""
    passed = passage_of([0, 1, 2], [MS, 2 * MS, -1], frame_bytes=[1000] * 3)
    analysis = analysis_of(links={"forward": {"policer": POLICER}}, steady_ns=0, stop_ns=MS)
    shares = [
        policed_share.measure(analysis, queue_view(passed, queue_of(limit_packets=places)))
        for places in (2, 3)
    ]
    assert shares == [(0.0,), (1 / 3,)]


def _odd_drops(left_ns: list[int], counted: int, larger: int = 0, **link: Any) -> FidelityRow:
    """Check frames at once and a bucket for two, with given fates; the first may be larger."""
    sizes = [1000 + larger, *[1000] * (len(left_ns) - 1)]
    view = queue_view(passage_of([0] * len(left_ns), left_ns, frame_bytes=sizes))
    kernel = {"dev": "r1-eth1", "kind": "clsact"}
    counts = {"before": [kernel | {"drops": 0}], "after": [kernel | {"drops": counted}]}
    documents = {f"qdisc/r1-{when}.json": count for when, count in counts.items()}
    links = {"forward": {"policer": POLICER, **link}}
    analysis = analysis_of(links=links, documents=documents)
    (row,) = policer_check(analysis, "forward", view, None)
    return row


def test_a_drop_of_the_policer_is_one_of_its_bucket() -> None:
    """A frame that the bucket refuses must be dropped, and the kernel must count as many drops.

    A packet that the bucket passes may be dropped by the queue behind it.
    """
    sound = _odd_drops([1000, 2000, -1], counted=1)
    assert sound.check == "forward: 1 drops before the queue that differ from the token bucket's"
    assert (sound.value, sound.bound, sound.verdict) == (0, "0", Verdict.PASS)
    assert _odd_drops([1000, -1, -1], counted=1).value == 0
    passed_on = _odd_drops([1000, 2000, 3000], counted=1)
    assert (passed_on.value, passed_on.verdict) == (1, Verdict.FAIL)
    assert _odd_drops([1000, 2000, -1], counted=3).value == 2
    assert _odd_drops([1000, 2000, 3000], counted=0).value == 2


def test_no_policer_refuses_nothing() -> None:
    """Without a policer the share of refused packets is undefined."""
    assert math.isnan(_share(0, 6 * MS, policer=None))


def test_drops_are_checked_where_times_are_exact() -> None:
    """Without a policer, or on a clock that runs while the host works, no check is made."""
    analysis = analysis_of(links={"forward": {"policer": POLICER}})
    assert policer_check(analysis, "forward", queue_view(), ClockError(analysis)) == []
    assert policer_check(analysis_of(), "forward", queue_view(), None) == []


def test_a_frame_above_the_mtu_takes_no_tokens() -> None:
    """Packets above the MTU are dropped before the policer, whose bucket keeps two frames."""
    mtu = {"bytes": 986, "icmp": True}
    row = _odd_drops([-1, MS, 2 * MS, -1], 1, larger=1, mtu_bytes=mtu)
    assert row.verdict is Verdict.PASS

"""Fidelity checks of elements, on packets made by hand."""

import math
import typing
from types import FunctionType

import numpy as np
import pytest
from capture_analysis.discovery import modules_of
from conversation import packets
from support.column_run import Ends, analysis_of, queue_view

from twoway.contract.judge import Verdict
from twoway.contract.metrics import FidelityRow
from twoway.contract.network import START_NS
from twoway.measure import links
from twoway.measure.link_check import QueueCheck, RunCheck, checks_of_links
from twoway.measure.links.delay import check
from twoway.measure.links.impairments import link_impairments

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

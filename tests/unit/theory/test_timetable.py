"""Links that change by a table: when packets leave, in small numbers."""

import numpy as np
import pytest

from twoway.theory.timetable import Timetable, rate_table

MS, S = 10**6, 10**9


def _leaves(table: Timetable, *packets: tuple[int, int], start_ns: int = 0) -> list[float]:
    """When packets of (ms, bytes) leave, ms."""
    arrived, size = np.array(packets, dtype=np.int64).T
    return [float(each) / MS for each in table.leaves(start_ns, arrived * MS, size)]


# 1 byte/us, nothing from 10 to 20 ms, then 2 bytes/us.
RATES = Timetable("rates", ((0, 10**6), (10 * MS, 0), (20 * MS, 2 * 10**6)))
# A packet at 5 and two at 10 ms, again every 10 ms.
TRACE = rate_table({"schedule": None, "opportunities": [[5, 1], [10, 2]]})


def test_a_rate_that_changes_takes_a_packet_pro_rata() -> None:
    """2 ms before the outage and 500 us after it send 3000 bytes."""
    assert _leaves(RATES, (8, 3000)) == [20.5]


def test_a_backlog_leaves_back_to_back() -> None:
    """Of two packets at once the second has the link after the first."""
    assert _leaves(RATES, (0, 1000), (0, 500), (3, 500)) == [1, 1.5, 3.5]


def test_before_its_start_a_table_has_its_first_rate() -> None:
    """A packet 100 ms before the start has 1 byte/us."""
    assert _leaves(RATES, (0, 1000), start_ns=100 * MS) == [1]


def test_an_opportunity_takes_1500_bytes() -> None:
    """Three small packets fit one; a packet of 2000 takes what is left, and the next."""
    assert _leaves(TRACE, (0, 500), (1, 500), (2, 400), (3, 2000)) == [5, 5, 5, 10]


def test_opportunities_of_an_idle_link_are_lost() -> None:
    """What arrives at the very time of the last opportunity waits for the next lap."""
    assert _leaves(TRACE, (10, 1500), (10, 1500)) == [15, 20]


def test_a_trace_starts_again_after_its_last_time() -> None:
    """The 31st of 40 packets at once leaves in the eleventh lap of three opportunities."""
    found = _leaves(TRACE, *[(0, 1500)] * 40)
    assert found[:6] == [5, 10, 10, 15, 20, 20]
    assert found[30] == 105


def test_delays_keep_the_order() -> None:
    """Who comes 1 ms after the delay falls from 20 to 5 ms leaves with those before it."""
    delays = Timetable("delays", ((0, 20 * MS), (10 * MS, 5 * MS)))
    assert _leaves(delays, (9, 1), (10, 1), (26, 1)) == [29, 29, 31]


@pytest.mark.parametrize(("first_ms", "last_ms", "offered"), [(0, 30, 30_000), (5, 15, 5000)])
def test_offered_bytes_of_rates(first_ms: int, last_ms: int, offered: float) -> None:
    """An outage offers nothing: 10 + 0 + 2 times 10 ms of a byte/us."""
    assert RATES.offered_bytes(0, first_ms * MS, last_ms * MS) == offered


def test_offered_bytes_of_a_trace() -> None:
    """A second of three packets in 10 ms offers 300; the time of its end belongs to the next."""
    assert TRACE.offered_bytes(0, 0, S) == 300 * 1500
    assert TRACE.offered_bytes(3, 3, 3 + S) == 300 * 1500

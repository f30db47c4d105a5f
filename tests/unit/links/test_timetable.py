"""Links that change by a table: departure times in small numbers."""

import numpy as np
import pytest
from capture_analysis.errors import AnalysisError

from twoway.links.delay import ChangingDelay
from twoway.links.rate import Grants, Rate
from twoway.links.timetable import Timetable

MS, S = 10**6, 10**9


def _leaves(table: Timetable, *packets: tuple[int, int], start_ns: int = 0) -> list[float]:
    """Return when packets of (ms, bytes) leave, ms."""
    arrived, size = np.array(packets, dtype=np.int64).T
    return [float(each) / MS for each in table.leaves(start_ns, arrived * MS, size)]


# 1 byte/us, nothing from 10 to 20 ms, then 2 bytes/us.
RATES = Timetable("rates", ((0, 10**6), (10 * MS, 0), (20 * MS, 2 * 10**6)))
# A packet at 5 and two at 10 ms, repeated every 10 ms.
TRACE = Rate(opportunities=[(5, 1), (10, 2)]).table


def test_a_rate_that_changes_takes_a_packet_pro_rata() -> None:
    """3000 bytes take 2 ms before the outage and 500 us after it."""
    assert _leaves(RATES, (8, 3000)) == [20.5]


def test_a_backlog_leaves_back_to_back() -> None:
    """Of two packets at once the second uses the link after the first."""
    assert _leaves(RATES, (0, 1000), (0, 500), (3, 500)) == [1, 1.5, 3.5]


def test_before_its_start_a_table_has_its_first_rate() -> None:
    """A packet 100 ms before the start is sent at the first rate, 1 byte/us."""
    assert _leaves(RATES, (0, 1000), start_ns=100 * MS) == [1]


def test_an_opportunity_takes_1500_bytes() -> None:
    """Three small packets fit one opportunity; a packet of 2000 takes its rest, and the next."""
    assert _leaves(TRACE, (0, 500), (1, 500), (2, 400), (3, 2000)) == [5, 5, 5, 10]


def test_opportunities_of_an_idle_link_are_lost() -> None:
    """A packet that arrives at the very time of the last opportunity waits for the next lap."""
    assert _leaves(TRACE, (10, 1500), (10, 1500)) == [15, 20]


def test_a_trace_starts_again_after_its_last_time() -> None:
    """A trace repeats: packet 31 of a backlog leaves at 105 ms, the first time of lap eleven."""
    found = _leaves(TRACE, *[(0, 1500)] * 40)
    assert found[:6] == [5, 10, 10, 15, 20, 20]
    assert found[30] == 105


def test_delays_keep_the_order() -> None:
    """A packet 1 ms after the delay fell from 20 to 5 ms leaves with the packets before it."""
    delays = Timetable("delays", ((0, 20 * MS), (10 * MS, 5 * MS)))
    assert _leaves(delays, (9, 1), (10, 1), (26, 1)) == [29, 29, 31]


@pytest.mark.parametrize(("first_ms", "last_ms", "offered"), [(0, 30, 30_000), (5, 15, 5000)])
def test_offered_bytes_of_rates(first_ms: int, last_ms: int, offered: float) -> None:
    """In an outage no bytes are offered: 10 ms at 1 byte/us, 10 ms at none, 10 ms at 2."""
    assert RATES.offered_bytes(0, first_ms * MS, last_ms * MS) == offered


def test_offered_bytes_of_a_trace() -> None:
    """A second with three packets per 10 ms offers 300; its end belongs to the next one."""
    assert TRACE.offered_bytes(0, 0, S) == 300 * 1500
    assert TRACE.offered_bytes(3, 3, 3 + S) == 300 * 1500


def test_schedules_are_in_seconds_megabits_and_milliseconds() -> None:
    """Rates are whole bytes a second, delays whole ns; without `repeat_s` the last step stays."""
    rates = {"schedule": [[0, 8.000009], [0.5, 16]], "repeat_s": 2}
    steps = ((0, 1_000_001), (500 * MS, 2_000_000))
    assert Rate.model_validate(rates).table == Timetable("rates", steps, 2 * S)
    assert Rate.model_validate(rates | {"repeat_s": None}).table.period_ns == 0
    delays = {"schedule": [[0, 20.5], [1.5, 5]], "repeat_s": 3}
    steps = ((0, 20_500_000), (1500 * MS, 5 * MS))
    assert ChangingDelay.model_validate(delays).table == Timetable("delays", steps, 3 * S)
    assert ChangingDelay.model_validate(delays | {"repeat_s": None}).table.period_ns == 0


def test_grants_and_opportunities_are_steps() -> None:
    """Three grants of 600 bytes carry a packet; a trace's last time is the next lap's first."""
    grants = Rate(grants=Grants(every_ms=2.5, bytes=600)).table
    steps = tuple((n * 5 * MS // 2, 600) for n in range(3))
    assert grants == Timetable("opportunities", steps, 15 * MS // 2)
    trace = Rate(opportunities=[(0, 1), (5, 2), (10, 3)]).table
    assert trace == Timetable("opportunities", ((0, 4 * 1500), (5 * MS, 2 * 1500)), 10 * MS)
    assert TRACE.steps == ((0, 2 * 1500), (5 * MS, 1500))


def test_a_table_was_repeated_before_its_start() -> None:
    """A packet 3 ms before a trace starts leaves with the last packets of the lap before."""
    assert _leaves(TRACE, (0, 1500), start_ns=3 * MS) == [3]
    assert _leaves(TRACE, (0, 1500), (0, 3000), start_ns=13 * MS) == [3, 8]


def test_nothing_leaves_where_nothing_came() -> None:
    """Without packets there are no departures."""
    none = np.zeros(0, dtype=np.int64)
    assert TRACE.leaves(0, none, none).tolist() == []


def test_digest_is_fnv_1a() -> None:
    """The digest is that computed word by word by hand."""
    digest = 0xCBF29CE484222325
    for word in (0, 3000, 5 * MS, 1500):
        digest = ((digest ^ word) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    assert TRACE.digest == digest


def test_a_lap_and_its_limit() -> None:
    """A 64 KiB packet takes 44 laps of 1500 bytes; such a lap may have 2^20 / 44 = 23831 steps."""
    assert Timetable("rates", RATES.steps, 30 * MS).lap_bytes == 30_000
    assert TRACE.lap_bytes == 4500
    for steps, placed in ((23_831, True), (23_832, False)):
        rows = ((0, 1500), *((n, 0) for n in range(1, steps)))
        assert Timetable("opportunities", rows, S).soon_placed is placed
    large = ((0, 1 << 20), *((n, 0) for n in range(1, 1 << 20)))
    assert Timetable("opportunities", large, S).soon_placed
    assert not Timetable("opportunities", (*large, (1 << 20, 0)), S).soon_placed


def test_a_table_repeated_without_end() -> None:
    """A table of a stranger's run that repeats each ns, or never offers a byte, is refused."""
    fast = Timetable("opportunities", ((0, 1000),), period_ns=1)
    with pytest.raises(AnalysisError, match="a table with more than 16777216 steps in a run"):
        fast.offered_bytes(0, 0, 10 * S)
    idle = Timetable("rates", ((0, 0),), period_ns=S)
    with pytest.raises(AnalysisError, match="a table with more than"):
        idle.leaves(0, np.array([5]), np.array([1500]))

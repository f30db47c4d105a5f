"""Links that change by a table: schedules, traces, departure times and delays."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from capture_analysis.errors import AnalysisError

from twoway.description.experiment import Profile
from twoway.description.placement import placement_problems
from twoway.description.reading import load_profile
from twoway.description.rules import profile_problems
from twoway.description.topology import load_topology
from twoway.errors import SpecError
from twoway.links.delay import ChangingDelay
from twoway.links.direction import Direction
from twoway.links.rate import Grants, Rate
from twoway.links.shaper import Shaper
from twoway.links.timetable import Timetable
from twoway.paths import TOPOLOGIES
from twoway.plan.shaping import compile_profile

MS, S = 10**6, 10**9


def _leaves(table: Timetable, *packets: tuple[int, int], start_ns: int = 0) -> list[float]:
    """Return when packets of (ms, bytes) leave, ms."""
    arrived, size = np.array(packets, dtype=np.int64).T
    return [float(each) / MS for each in table.leaves(start_ns, arrived * MS, size)]


# 1 byte/us, nothing from 10 to 20 ms, then 2 bytes/us.
RATES = Timetable("rates", ((0, 10**6), (10 * MS, 0), (20 * MS, 2 * 10**6)))
# A packet at 5 and two at 10 ms, repeated every 10 ms.
TRACE = Rate(opportunities=[(5, 1), (10, 2)]).table


# Where a table starts late it has begun before, in ms; packets of (ms, bytes), and when they leave.
DELAYS = Timetable("delays", ((0, 20 * MS), (10 * MS, 5 * MS)))
DEPARTURES: dict[str, tuple[Timetable, int, list[tuple[int, int]], Sequence[float]]] = {
    "2 ms before the outage, 500 us after it": (RATES, 0, [(8, 3000)], [20.5]),
    "back to back": (RATES, 0, [(0, 1000), (0, 500), (3, 500)], [1, 1.5, 3.5]),
    "before the start at the first rate": (RATES, 100, [(0, 1000)], [1]),
    "three small packets fit one opportunity, 2000 bytes take its rest and the next": (
        *(TRACE, 0, [(0, 500), (1, 500), (2, 400), (3, 2000)]),
        [5, 5, 5, 10],
    ),
    "at the time of the lap's last opportunity it is too late": (
        *(TRACE, 0, [(10, 1500), (10, 1500)]),
        [15, 20],
    ),
    "packet 31 leaves at the first time of lap eleven": (
        *(TRACE, 0, [(0, 1500)] * 31),
        [lap + ms for lap in range(0, 110, 10) for ms in (5.0, 10, 10)][:31],
    ),
    "a delay that falls keeps the order": (DELAYS, 0, [(9, 1), (10, 1), (26, 1)], [29, 29, 31]),
    "3 ms before the start the lap before ends": (TRACE, 3, [(0, 1500)], [3]),
    "13 ms before the start, likewise": (TRACE, 13, [(0, 1500), (0, 3000)], [3, 8]),
}


def test_departures_of_tables() -> None:
    """Packets leave and travel by rates, opportunities and delays, in their order, lap by lap."""
    found = {
        fact: _leaves(table, *packets, start_ns=start_ms * MS)
        for fact, (table, start_ms, packets, _) in DEPARTURES.items()
    }
    assert found == {fact: leaves for fact, (*_, leaves) in DEPARTURES.items()}


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


def test_nothing_leaves_where_nothing_came() -> None:
    """Without packets there are no departures."""
    none = np.zeros(0, dtype=np.int64)
    assert TRACE.leaves(0, none, none).tolist() == []


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


# Rates that change: schedules and traces become tables, or are refused with a sentence.


def _load(folder: Path, rate: dict[str, Any], **fields: Any) -> Profile:
    direction = {"rate": rate, "delay_ms": 0, "queue_packets": 9, **fields}
    directions = {"forward": direction, "reverse": direction}
    path = folder / "p.yml"
    path.write_text(yaml.safe_dump({"schema": 1, "title": "t", "directions": directions}))
    return load_profile(path)


def _direction(folder: Path, rate: dict[str, Any]) -> Direction:
    return _load(folder, rate).directions["forward"]


def _shaper(profile: Profile) -> Shaper:
    return compile_profile(profile, load_topology(TOPOLOGIES / "two_node.py", {}))[0]


def test_a_schedule_is_a_table_of_rates(tmp_path: Path) -> None:
    """The plan's table has bit/s and starts with the traffic, 30 s after boot."""
    profile = _load(tmp_path, {"schedule": [[0, 8], [2.5, 0.5]], "repeat_s": 5})
    assert " ".join(_shaper(profile).arguments) == (
        "timetable rates 0ns:8000000bit,2500000000ns:500000bit period 5000000000ns "
        "start 946684830000000000ns limit 9 overhead 0"
    )
    link = profile.directions["forward"]
    assert (link.start_mbit, link.least_mbit, link.most_mbit) == (8, 0.5, 8)


def test_a_trace_is_read_beside_the_profile(tmp_path: Path) -> None:
    """Lines with one time are one step; the last line's time is time 0 of the next lap."""
    (tmp_path / "cell").write_text("0\n3\n3\n5\n10\n10\n")
    link = _direction(tmp_path, {"mahimahi": "cell"})
    rate = link.elements.find(Rate)
    assert rate is not None
    assert rate.table.steps == ((0, 4500), (3_000_000, 3000), (5_000_000, 1500))
    assert rate.table.period_ns == 10_000_000
    assert link.start_mbit == pytest.approx(6 * 1500 * 8e-3 / 10)
    assert link.most_mbit == 36


def test_grants_carry_what_the_kernel_demands_of_a_lap(tmp_path: Path) -> None:
    """A lap has enough grants for 1500 bytes; the rate is their mean, the peak the busiest ms."""
    link = _direction(tmp_path, {"grants": {"every_ms": 0.3, "bytes": 400}})
    rate = link.elements.find(Rate)
    assert rate is not None
    assert rate.table.steps == ((0, 400), (300_000, 400), (600_000, 400), (900_000, 400))
    assert rate.table.period_ns == 1_200_000
    assert link.start_mbit == link.least_mbit == pytest.approx(400 * 8e-3 / 0.3)
    assert link.most_mbit == 4 * 400 * 8e-3


def test_a_long_trace_comes_in_parts(tmp_path: Path) -> None:
    """A message has at most 2000 steps, so a long trace has several; all steps are read back."""
    (tmp_path / "cell").write_text("".join(f"{ms}\n" for ms in range(9000)))
    shaper = _shaper(_load(tmp_path, {"mahimahi": "cell"}))
    parts = [shaper.arguments[2], *(line.split()[-1] for line in shaper.inner)]
    assert [len(part.split(",")) for part in parts] == [2000, 2000, 2000, 2000, 999]
    assert shaper.inner[0].startswith("qdisc change dev r1-eth1 root timetable opportunities ")
    assert (("options", "steps"), 8999) in shaper.readback


@pytest.mark.parametrize(
    ("rate", "sentence"),
    [
        ({}, ".rate: takes one of schedule, grants, mahimahi and opportunities; got none"),
        ({"schedule": [[1, 8]]}, ".rate.schedule.0: the first is from 0 s on, got 1"),
        ({"schedule": [[0, 0], [1, 8]]}, ".rate.schedule.0: the first rate must be above 0"),
        ({"schedule": [[0, 8], [1, 0]]}, ".rate.schedule.1: the last rate must be above 0"),
        ({"schedule": [[0, 8], [2, 1], [2, 3]]}, ".rate.schedule.2: must be later than the one"),
        ({"schedule": [[0, 8], [2, 1]], "repeat_s": 2}, ".rate.repeat_s: must be after the last"),
        ({"schedule": [[0, 0.001]], "repeat_s": 1}, ".rate.repeat_s: must be long enough"),
        (
            {"grants": {"every_ms": 4, "bytes": 40}, "repeat_s": 1},
            ".rate.repeat_s: not allowed with grants",
        ),
        ({"grants": {"every_ms": 4, "bytes": 40}, "schedule": [[0, 8]]}, ".rate: takes one of"),
        ({"opportunities": [[0, 1]]}, ".rate.opportunities: the last must be after 0 ms, got 0"),
        ({"opportunities": [[4, 1], [4, 1]]}, ".rate.opportunities.1: must be later than"),
        ({"opportunities": [[4, 1]], "repeat_s": 1}, ".rate.repeat_s: not allowed with grants"),
        ({"mahimahi": "none"}, ".rate.mahimahi: none: No such file or directory"),
        ({"mahimahi": "/etc/passwd"}, "/etc/passwd: is not below the"),
    ],
)
def test_contradictory_rate_names_its_field(
    tmp_path: Path, rate: dict[str, Any], sentence: str
) -> None:
    """Each mistake is refused with its field and value."""
    with pytest.raises(SpecError) as caught:
        _load(tmp_path, rate)
    assert any(sentence in problem for problem in caught.value.problems), caught.value.problems


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("1\n2.5\n", "line 2: must be a time in whole ms, got '2.5'"),
        ("7\n6\n", "line 2: must not be before the one before (7), got 6"),
        ("0\n", "has no opportunity after 0 ms"),
        ("", "has no opportunity after 0 ms"),
        ("1\n\n2\n", "line 2: must be a time in whole ms, got ''"),
    ],
)
def test_files_that_are_no_traces(tmp_path: Path, content: str, sentence: str) -> None:
    """An invalid line is reported with its content."""
    (tmp_path / "cell").write_text(content)
    with pytest.raises(SpecError, match=r"forward\.rate\.mahimahi: cell: ") as caught:
        _load(tmp_path, {"mahimahi": "cell"})
    assert sentence in str(caught.value)


@pytest.mark.parametrize("field", [{"dtm": {}}, {"cell_bytes": 48}, {"rate_mbit": 1}])
def test_what_a_changing_rate_excludes(tmp_path: Path, field: dict[str, Any]) -> None:
    """A changing rate excludes another shaper, cells that Linux does not count, and a rate."""
    expected = r"a link has one shaper|counts ATM's cells alone|got rate_mbit and rate"
    with pytest.raises(SpecError, match=expected):
        _load(tmp_path, {"schedule": [[0, 8]]}, **field)


# Delays that change: schedules become tables, or are refused with a sentence.

SCHEDULE = {"schedule": [[0, 20], [15, 35.000001]]}


def _profile(names: tuple[str, str] = ("forward", "reverse"), **fields: Any) -> Profile:
    direction = {"rate_mbit": 10, "queue_packets": 9, "delay": SCHEDULE, **fields}
    return Profile.model_validate(
        {"schema": 1, "title": "t", "directions": dict.fromkeys(names, direction)}
    )


def test_a_schedule_is_a_table_of_delays() -> None:
    """The link has a table in ns, and a queue for ten times the packets of the longest delay."""
    profile = _profile()
    assert profile_problems(profile) == []
    shaper = compile_profile(profile, load_topology(TOPOLOGIES / "two_node.py", {}))[1]
    assert shaper.interface.name == "r2-eth0"
    assert " ".join(shaper.arguments) == (
        "timetable delays 0ns:20000000ns,15000000000ns:35000001ns period 0ns "
        "start 946684830000000000ns limit 8102 overhead 0"
    )


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"delay_ms": 1},
            ": delay_ms or delay says how long packets travel; got delay_ms and delay",
        ),
        ({"delay": None}, ": delay_ms or delay says how long packets travel; got none"),
        ({"delay": {"schedule": [[1, 2]]}}, ".delay.schedule.0: the first is from 0 s on, got 1"),
        ({"delay": {**SCHEDULE, "repeat_s": 15}}, ".delay.repeat_s: must be after the last (15 s)"),
        (
            {"impairments": {"jitter_ms": 40}},
            ".impairments.jitter_ms: must not exceed the shortest delay (20), got 40",
        ),
        (
            {"impairments": {"reorder_percent": 1}},
            ".impairments.reorder_percent: needs delay_ms: with a delay that changes no packet",
        ),
        (
            {"ack_queue": "own"},
            ".ack_queue: ack_queue uses the delay's netem in another way; got 'own'",
        ),
    ],
)
def test_contradictory_delay_names_its_field(fields: dict[str, Any], sentence: str) -> None:
    """Each mistake is refused with its field and value."""
    found = profile_problems(_profile(**fields))
    assert any(problem.startswith(f"directions.forward{sentence}") for problem in found), found


def test_a_delay_of_several_queues_is_refused() -> None:
    """If two clients share a changing delay, the order of their packets is unknown: refused."""
    graph = load_topology(TOPOLOGIES / "client_server.py", {"clients": 2})
    found = placement_problems(_profile(("down", "up")), graph)
    assert "directions.down.delay: takes a direction with one queue, and with delays" in found[0]

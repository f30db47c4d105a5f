"""Rates that change: schedules and traces become tables, or are refused with a sentence."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from twoway.description.experiment import Profile
from twoway.description.reading import load_profile
from twoway.description.topology import load_topology
from twoway.errors import SpecError
from twoway.links.direction import Direction
from twoway.links.rate import Rate
from twoway.links.shaper import Shaper
from twoway.paths import TOPOLOGIES
from twoway.plan.shaping import compile_profile


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
        (
            {"mahimahi": "/etc/passwd"},
            "/etc/passwd: is not below the",
        ),
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

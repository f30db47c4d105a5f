"""Half-duplex links: a profile becomes two queues on a medium, with its order, or is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from twoway.description.experiment import Profile
from twoway.description.placement import placement_problems
from twoway.description.reading import load_profile
from twoway.description.topology import load_topology
from twoway.errors import SpecError
from twoway.links.half_duplex import HalfDuplex, Medium
from twoway.paths import TOPOLOGIES
from twoway.plan.shaping import compile_profile, media

END = {"rate_mbit": 20, "delay_ms": 2, "queue_packets": 9}


def _load(folder: Path, shared: dict[str, Any], **reverse: Any) -> Profile:
    directions = {"forward": END, "reverse": {**END, **reverse}}
    document = {"schema": 1, "title": "t", "half_duplex": shared, "directions": directions}
    path = folder / "p.yml"
    path.write_text(yaml.safe_dump(document))
    return load_profile(path)


def test_both_ends_are_on_one_medium(tmp_path: Path) -> None:
    """Each end has its rate, overhead and limit, and both have one medium, gap and turn."""
    profile = _load(tmp_path, {"gap_us": 16.004}, rate_mbit=5.000001, overhead_bytes=-14)
    shapers = compile_profile(profile, load_topology(TOPOLOGIES / "two_node.py", {}))
    queues = [" ".join((*s.arguments, *s.home)) for s in shapers if s.arguments[0] == "medium"]
    assert queues == [
        "medium number 0 gap 16004ns turn 1 rate 20000000bit overhead 0 limit 9",
        "medium number 0 gap 16004ns turn 1 rate 5000000bit overhead -14 limit 9 netns r1",
    ]
    assert {s.module for s in shapers} == {"sch_medium", None}
    assert (("options", "gap_ns"), 16004) in shapers[0].readback


def test_each_link_is_a_medium() -> None:
    """Links are numbered; the queues at a link's two ends share its number and namespace."""
    graph = load_topology(TOPOLOGIES / "client_server.py", {"clients": 3})
    places = media(graph)
    for direction in ("down", "up"):
        found = [places[i.name] for i in graph.queues[direction]]
        assert found == [("j1", 0), ("j2", 1), ("j3", 2)]


def test_a_medium_has_two_ends(tmp_path: Path) -> None:
    """A topology with a queue at only one end of a link cannot be half-duplex."""
    profile = _load(tmp_path, {"gap_us": 0})
    graph = load_topology(TOPOLOGIES / "two_node.py", {})
    assert placement_problems(profile, graph) == []
    one_way = replace(graph, queues={**graph.queues, "reverse": ()})
    (problem,) = placement_problems(profile, one_way)
    assert problem.startswith("half_duplex: r1-eth1 has a queue, and the link's other end, r2-eth1")


@pytest.mark.parametrize(
    ("reverse", "sentence"),
    [
        ({"ack_queue": "own"}, ".ack_queue: the rate of ack_queue is a link's own; got 'own'"),
        (
            {"cell_bytes": 48},
            ".cell_bytes: without a rate_mbit and a drop-tail queue Linux counts ATM's cells alone",
        ),
        (
            {"rate_mbit": None, "rate": {"schedule": [[0, 8]]}},
            ".rate: an end of a half-duplex link has a rate_mbit",
        ),
        (
            {"rate_mbit": None, "dtm": {"slots": 4}},
            ".dtm: an end of a half-duplex link has a rate_mbit",
        ),
    ],
)
def test_what_a_half_duplex_link_excludes(
    tmp_path: Path, reverse: dict[str, Any], sentence: str
) -> None:
    """Each field that an end cannot have is named, with its value."""
    with pytest.raises(SpecError) as caught:
        _load(tmp_path, {"gap_us": 1}, **reverse)
    assert [p for p in caught.value.problems if f"directions.reverse{sentence}" in p]


@pytest.mark.parametrize(
    ("shared", "sentence"),
    [
        ({}, "half_duplex.gap_us: required"),
        ({"gap_us": -1}, "half_duplex.gap_us: must be greater than or equal to 0, got -1"),
        ({"gap_us": 0.0005}, "half_duplex.gap_us: must be a multiple of 0.001, got 0.0005"),
        ({"gap_us": 1, "turn_packets": 0}, "half_duplex.turn_packets: must be greater than"),
        ({"gap": 1}, 'half_duplex.gap: unknown field; did you mean "gap_us"?'),
    ],
)
def test_wrong_medium_names_its_field(
    tmp_path: Path, shared: dict[str, Any], sentence: str
) -> None:
    """Each mistake is refused with its field and value."""
    with pytest.raises(SpecError) as caught:
        _load(tmp_path, shared)
    assert [p for p in caught.value.problems if sentence in p], caught.value.problems


@pytest.mark.parametrize(("gap_us", "gap_ns"), [(0, 0), (0.001, 1), (16.004, 16_004)])
def test_a_profile_has_microseconds(gap_us: float, gap_ns: int) -> None:
    """The gap is a whole number of ns."""
    assert HalfDuplex(gap_us=gap_us, turn_packets=3).medium == Medium(gap_ns, 3)

"""UDP flows: refusals, and the options of their source."""

from pathlib import Path
from typing import Any

import pytest
from support.running import SMALL, problems_of, write_experiment

from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

UDP = {"name": "udp", "from": "h1", "to": "h2", "rate_mbit": 8}


def _write(folder: Path, *flows: dict[str, Any], **fields: Any) -> Path:
    datagrams = [{**UDP, **each} for each in flows]
    return write_experiment(folder, {**SMALL, "flows": [], "datagrams": datagrams, **fields})


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"to": "h9"}, 'to: no host "h9"; the topology has h1, h2'),
        ({"to": "h1"}, 'to: "h1" is also where the flow starts'),
        ({"packet_bytes": 9181}, "packet_bytes: must be at most stack.mtu_bytes (9180)"),
        ({"start_s": 1.5}, "start_s: must be below duration_s (1.5), got 1.5"),
        ({"stop_s": 0.5, "start_s": 1}, "start_s: must be below stop_s (0.5), got 1"),
        ({"stop_s": 2}, "stop_s: must be at most duration_s (1.5), got 2"),
        ({"rate_mbit": 0}, "rate_mbit: must be greater than or equal to 0.000001, got 0"),
        ({"packet_bytes": 36, "rate_mbit": 9999}, "51724138 packets together, at most"),
        (
            {"film": {"frames_per_s": 20_000}},
            "film.frames_per_s: 30000 frames, at most 15000 are sent",
        ),
        (
            {"film": {"frames_per_s": 10}, "arrivals": "poisson"},
            "arrivals: frames of a film leave at equal intervals",
        ),
        (
            {"film": {"frames_per_s": 10}, "on_off": {"mean_on_s": 1, "mean_off_s": 1}},
            "on_off: a film has no pauses",
        ),
    ],
)
def test_wrong_datagram_flow_names_its_field(
    fields: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    """Each mistake is refused with its field and value."""
    (found,) = problems_of(_write(tmp_path, fields))
    assert found.startswith((f"datagrams.0.{problem}", f"datagrams: {problem}"))


def test_names_are_of_one_thing(tmp_path: Path) -> None:
    """A UDP flow, a TCP flow and a program must have different names."""
    path = _write(tmp_path, {}, {}, flows=SMALL["flows"])
    assert problems_of(path) == ['datagrams.1.name: "udp" is used twice']


def test_a_source_is_told_all(tmp_path: Path) -> None:
    """The source's options are the flow's payload, interval, times, process and pauses."""
    pauses = {"mean_on_s": 0.1, "mean_off_s": 0.2}
    flow = {"arrivals": "poisson", "on_off": pauses, "seed": 7, "stop_s": 1, "start_s": 0.5}
    plan = build_plan(load_point(str(_write(tmp_path, flow))))
    (source,) = (each for each in plan.sources if each.name == "source-udp")
    words = " ".join(source.run)
    start_ns = plan.clock.start_ns
    assert "--bytes 972 --interval 1000000" in words
    assert f"--start-at {start_ns + 500_000_000} --stop-at {start_ns + 10**9} --seed 7" in words
    assert words.endswith("--poisson --on 100000000 --off 200000000")


def test_frames_of_a_film_keep_its_mean_rate(tmp_path: Path) -> None:
    """The packets of all frames together are those of the mean rate, though frames differ."""
    flow = {"film": {"frames_per_s": 20}, "start_s": 0.5}
    plan = build_plan(load_point(str(_write(tmp_path, flow))))
    (source,) = (each for each in plan.sources if each.name == "source-udp")
    assert "--interval 50000000" in " ".join(source.run)
    frames = [int(number) for number in source.run[source.run.index("--frames") + 1].split(",")]
    assert len(frames) == 20
    assert sum(frames) == 1000
    assert max(frames) > 2 * sum(frames) / len(frames)


@pytest.mark.parametrize(
    ("flows", "problem"),
    [
        ([{"arrivals": "poisson", "rate_mbit": 131.5}], "offers 1.0"),
        ([{}, {"name": "other"}], "udp is not alone in the queue forward"),
        (
            [{"on_off": {"mean_on_s": 1, "mean_off_s": 1}}],
            "udp pauses, is a film, or passes several",
        ),
        ([{"film": {"frames_per_s": 10}}], "udp pauses, is a film, or passes several"),
    ],
)
def test_a_theory_says_where_it_holds(
    flows: list[dict[str, Any]], problem: str, tmp_path: Path
) -> None:
    """The closed forms need a flow without pauses that is alone in one queue and fits the link."""
    row = {"metric": "datagram_delay.udp", "value": "theory", "tolerance": 0, "why": "a test"}
    path = _write(tmp_path, *flows, theory="datagrams", predictions=[row])
    (found,) = problems_of(path)
    assert problem in found

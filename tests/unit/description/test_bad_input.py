"""Bad input: every problem at once, exit code 2, and nothing started."""

import copy
from pathlib import Path
from typing import Any

import pytest
from support.running import CLAIMED, SMALL, write_experiment
from support.warm_command import twoway

from twoway.description.point import point_names
from twoway.description.reading import load_profile
from twoway.description.traffic.registry import kinds
from twoway.errors import SpecError
from twoway.runs.points import load_point


def _vet(tmp_path: Path, **changes: Any) -> str:
    """Return `twoway run`'s output on a file; another test checks that the output is complete."""
    path = write_experiment(tmp_path, copy.deepcopy(SMALL) | changes)
    with pytest.raises(SpecError) as raised:
        load_point(point_names(str(path))[0])
    return str(raised.value)


def _flow(**changes: Any) -> dict[str, Any]:
    return {**SMALL["flows"][0], **changes}


def _one(**changes: Any) -> dict[str, Any]:
    return {"flows": [_flow(**changes)]}


def _claims(*metrics: str | list[str]) -> dict[str, Any]:
    return {"claims": [{**CLAIMED, "metric": metric} for metric in metrics]}


def test_a_value_that_fits_no_type_is_one_sentence(tmp_path: Path) -> None:
    """A value of a wrong type gives one message for all allowed types, without Python's names."""
    axis = {"set": ["profile.forward.loss"], "to": {"random": {"percent": 1}}}
    said = _vet(tmp_path, matrix={"loss": axis})
    of_axis = [line for line in said.splitlines() if "matrix.loss.to.random: " in line]
    assert len(of_axis) == 1
    assert "must be true or false or a valid integer or a valid number or a" in of_axis[0]
    assert "[" not in of_axis[0].partition(", got")[0]
    assert "must be a valid list" not in said  # the form that was not chosen
    said = _vet(tmp_path, matrix={"loss": {**axis, "to": [[[1]]]}})
    assert "matrix.loss.to: must be fields with values" not in said  # nor here
    assert "matrix.loss.to.0: must be " in said


def test_hints_on_files_that_are_missing_come_together(tmp_path: Path) -> None:
    """If topology and profile are missing, one hint lists all that exist of both."""
    path = write_experiment(tmp_path, {**SMALL, "topology": {"name": "no"}, "profile": "no"})
    with pytest.raises(SpecError) as raised:
        load_point(str(path))
    assert raised.value.hint.startswith("existing topologies: chain, ")
    assert "; existing profiles: abr-ramp, " in raised.value.hint


_FILM = {"mean_mbit": 1, "frames_per_s": 25}
_TRANSFERS = {"per_s": 10, "mean_bytes": 1000}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"duration_s": -1}, "duration_s: must be greater than or equal to 0.001, got -1"),
        ({"duration_s": "10 ms"}, "duration_s: must be a valid number"),
        ({"duration_sec": 3}, 'duration_sec: unknown field; did you mean "duration_s"?'),
        # Its own name, known in another place, is no suggestion.
        (
            {"claims": [{**CLAIMED, "differs": [{"why": "x", "metric": "efficiency.left"}]}]},
            'claims.0.differs.0.metric: unknown field; did you mean "metrics"?',
        ),
        ({"stack": {"ecn": "maybe"}}, "stack.ecn: must be true or false or 'accept', 'accecn'"),
        ({"topology": {"name": "torus"}}, "topologies/torus.py: no such topology"),
        ({"profile": "campus"}, "tc-profiles/campus.yml: no such profile"),
        ({"warm_up_s": 9}, "warm_up_s: must be below duration_s (1.5), got 9"),
        ({"flows": []}, "flows: must be 1 to 4000 connections together, got 0"),
        (_one(to="h9"), 'flows.0.to: no host "h9"; the topology has h1, h2'),
        (_one(to="h1"), 'flows.0.to: "h1" is also where the flow starts'),
        ({"flows": [_flow(), _flow()]}, 'flows.1.name: "left" is used twice'),
        (_one(window_packets=None), "flows.0.window_packets: required with"),
        (_one(window_packets=30000), "30000 segments of 9180 bytes need 275400000"),
        (_one(congestion="qubic"), "no control 'qubic'; did you mean \"cubic\"?"),
        (_one(congestion="x"), "no control 'x'; there are bbr3, fixed, fast,"),
        (_one(congestion="x y"), "flows.0.congestion: must be of letters, digits"),
        ({"theory": "astrology"}, 'theory: no "astrology"; there are: ack_clock, '),
        (
            {"sysctls": {}},
            "sysctls: unknown field; stack.sysctls has those of all hosts, hosts.NAME",
        ),
        (
            {"qdiscs": {}},
            "qdiscs: unknown field; hosts.NAME.qdisc and routers.NAME.qdisc name them",
        ),
        ({"kernel": "6.12"}, "kernel: must be guest, wide, newest, 6.1 or an absolute path, got"),
        ({"own_modules": ["mine.c"]}, "own_modules: mine.c: No such file or directory"),
        ({"flows": [_flow(count=2), _flow(name="left-1")]}, '"left-1" is used twice'),
        (_one(stop_s=2), "flows.0.stop_s: must be at most duration_s (1.5), got 2"),
        (_one(start_s=1, stop_s=1), "flows.0.start_s: must be below stop_s (1), got 1"),
        (
            _one(transfers={**_TRANSFERS, "shape": 2}),
            "flows.0.transfers.shape: pareto alone has one; got 2 with exponential",
        ),
        (
            _one(transfers={**_TRANSFERS, "sizes": "pareto"}),
            "flows.0.transfers.shape: pareto alone has one; got none with pareto",
        ),
        ({"duration_s": float("inf")}, "duration_s: "),
        ({"observe": {"tcp_info_ms": 1e-7}}, "tcp_info_ms: must be greater than or equal to 0.01"),
        (_one(congestion="cubic"), "only congestion: fixed takes it, got 28"),
        (
            _claims("efficency.left", "queue_peak.sideways"),
            'claims.0.metric: no metric "efficency.left"; did you mean "efficiency.left"?',
        ),
        (_claims(["jain_index", "efficiency.up"]), 'claims.0.metric: no metric "efficiency.up"'),
        ({"schema": 2}, "schema: must be 1, got 2"),
        (
            {"modules": {"tcp_fixed": {"window": 77}}},
            "modules.tcp_fixed.window: no such parameter; tcp_fixed has windows",
        ),
        ({"modules": {"tcp_fixed": {"windows": "3 quiet"}}}, "modules.tcp_fixed.windows"),
        ({"stack": {"pacing": True}}, "flows.0.congestion: stack.pacing has no rate for fixed"),
        (
            _one(rate_mbit=1, film=_FILM),
            f"a flow has one of {', '.join(kinds())}; got ['rate_mbit', 'film']",
        ),
        (
            _one(transfers=_TRANSFERS, count=2),
            "flows.0.count: transfers sets the number of connections, got 2",
        ),
        (
            _one(transfers={**_TRANSFERS, "per_s": 1000}),
            "flows.0.transfers.per_s: 1500 transfers in 1.5 s, at most 500 can be run",
        ),
        (
            _one(transfers={**_TRANSFERS, "per_s": 0.001}),
            "flows.0.transfers.per_s: none arrives in 1.5 s with this seed",
        ),
        (_one(film={**_FILM, "mean_mbit": 9000}), "flows.0.film.mean_mbit: the largest frame has"),
    ],
)
def test_each_mistake_has_its_sentence(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    """Every kind of mistake is refused with file, field and value."""
    said = _vet(tmp_path, **changes)
    assert sentence in said
    assert "small.yml" in said


def test_all_problems_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    """Three mistakes in one file give three lines at once, and nothing is begun."""
    mistakes = {"duration_s": -1, "warm_up_s": -2, "colour": "red"}
    path, results = write_experiment(tmp_path, SMALL | mistakes), tmp_path / "results"
    done = twoway("run", path, "--results", results)
    assert (done.returncode, done.stdout, results.exists()) == (2, "", False)
    assert [f"{word}: " in done.stderr for word in mistakes] == [True] * 3
    assert all(line in done.stderr for line in _vet(tmp_path, **mistakes).splitlines())


@pytest.mark.slow
def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    """An experiment that is missing, not YAML, or not a mapping gives exit code 2."""
    assert twoway("run", "no-such-experiment").returncode == 2
    broken = tmp_path / "broken.yml"
    broken.write_text("flows: [")
    done = twoway("vet", broken)
    assert done.returncode == 2
    assert "not YAML" in done.stderr
    broken.write_text("just a sentence")
    assert "must be a mapping of fields, got str" in twoway("vet", broken).stderr


@pytest.mark.slow
def test_files_that_yaml_alone_would_let_pass(tmp_path: Path) -> None:
    """Duplicate keys, and files that are not UTF-8, are refused with a sentence."""
    twice = tmp_path / "twice.yml"
    twice.write_text(write_experiment(tmp_path, SMALL).read_text() + "duration_s: 9\n")
    assert '"duration_s" is given twice' in twoway("vet", twice).stderr
    twice.write_bytes(b"title: \xff\n")
    assert "not UTF-8" in twoway("vet", twice).stderr


@pytest.mark.parametrize("name", ["latest", "calibration", "a b"])
def test_ids_that_results_need_for_themselves(tmp_path: Path, name: str) -> None:
    """An experiment may not have a name that the results folder reserves."""
    done = twoway("vet", write_experiment(tmp_path, SMALL, name))
    assert done.returncode == 2
    assert "cannot be an experiment's id" in done.stderr


def test_every_point_that_is_wrong_is_named(tmp_path: Path) -> None:
    """Vetting a sweep names each wrong value of an axis, not just the first."""
    axis = {"set": ["profile.reverse.queue_packets"], "to": [-5, "ten", 20]}
    done = twoway("vet", write_experiment(tmp_path, {**SMALL, "matrix": {"queue": axis}}))
    assert done.returncode == 2
    assert "point queue=-5: " in done.stderr
    assert "point queue=ten: " in done.stderr
    assert "point queue=20: " not in done.stderr


def test_usage_errors_are_exit_code_2() -> None:
    """A command that does not exist is a usage error: exit code 2."""
    assert twoway("frobnicate").returncode == 2


def _profile_problems(folder: Path, forward: str, pools: str = "") -> list[str]:
    """List the problems of a profile's file, each from its direction on."""
    path = folder / "campus.yml"
    path.write_text(f"schema: 1\ntitle: t\n{pools}directions:\n  forward: {{{forward}}}\n")
    with pytest.raises(SpecError) as caught:
        load_profile(path)
    assert caught.value.exit_code == 2
    return [problem.removeprefix(f"{path}: directions.") for problem in caught.value.problems]


def test_profile_mistakes_have_their_sentence(tmp_path: Path) -> None:
    """A profile with a wrong rate or unit is refused with file, field and value."""
    found = _profile_problems(tmp_path, "rate_mbit: fast, rate_kbit: 10, delay_ms: 8")
    assert found == [
        "forward.rate_mbit: must be a valid number, got 'fast'",
        "forward.queue_packets: required",
        'forward.rate_kbit: unknown field; did you mean "rate_mbit"?',
    ]


CHANNEL = "delay_ms: 0, queue_packets: 9"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ("", "forward: rate_mbit, dtm or rate says how fast it is; got none"),
        ("rate_mbit: 1, dtm: {}", "says how fast it is; got rate_mbit and dtm"),
        ("dtm: {rate: {}, buffer: {}}", "forward.dtm: takes one allocator, got rate, buffer"),
        (
            "dtm: {slots: 4, min_slots: 9}",
            "dtm.slots: must lie within min_slots and max_slots (9..65535), got 4",
        ),
        (
            "dtm: {buffer: {low_bytes: 30000}}",
            "dtm.buffer.low_bytes: must be below high_bytes (30000), got 30000",
        ),
        (
            "dtm: {hysteresis: {levels: [{slots: 5}, {slots: 5}]}}",
            "levels.1.slots: must exceed those of the level before (5), got 5",
        ),
        (
            "dtm: {trace: {steps: [&s {after_ms: 0, slots: 2}, *s]}}",
            "dtm.trace.steps.1.after_ms: must be above 0, got 0",
        ),
        ("dtm: {owned_slots: 1}", "dtm.owned_slots: needs a pool, got 1"),
        ("dtm: {pool: bus}", "forward.dtm.pool: none of the profile's pools, got 'bus'"),
        (
            "dtm: {}, cell_bytes: 48",
            "cells alone, of 48 bytes with 5 of cell_overhead_bytes; got 48 with 0",
        ),
        ("dtm: {}, ack_queue: own, aqm: codel", ".ack_queue: a link has one queue; got 'own'"),
        ("dtm: {slots: 70000}", "less than or equal to 65535, got 70000"),
        ("dtm: {rate: {margin_slots: 0.7501}}", "multiple of 0.001, got 0.7501"),
        (
            "dtm: {trace: {steps: [{after_ms: -1, slots: 2}]}}",
            "steps.0.after_ms: must be greater than or equal to 0, got -1",
        ),
        (
            "dtm: {trace: {steps: [{after_ms: 0.0001, slots: 2}]}}",
            "steps.0.after_ms: must be a multiple of 0.001, got 0.0001",
        ),
    ],
)
def test_profiles_of_dtm_channels(tmp_path: Path, fields: str, sentence: str) -> None:
    """A problem of a channel is reported with the field and the value."""
    found = _profile_problems(tmp_path, f"{CHANNEL}, {fields}")
    assert any(sentence in problem for problem in found), found


def test_channels_that_want_more_than_their_pool_has(tmp_path: Path) -> None:
    """Slots beyond the pool's are refused with the field and the number of the pool's slots."""
    channel = "dtm: {slots: 21, pool: bus, owned_slots: 22}"
    assert _profile_problems(tmp_path, f"{CHANNEL}, {channel}", "pools: {bus: 20}\n") == [
        "forward.dtm.slots: must not exceed the pool's 20, got 21",
        "forward.dtm.owned_slots: must not exceed the pool's 20, got 22",
    ]


LINE = {"rate_mbit": 8, "delay_ms": 8, "queue_packets": 50}
LINES = {"directions": {"forward": LINE, "reverse": LINE}}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"mtu": 1432}, "mtu: unknown field; mtu_bytes is a direction's own MTU, and stack.mtu_"),
        (
            {"impairments": {"distribution": 1}},
            "distribution: unknown field; netem's jitter is unif",
        ),
        (
            {"aqm": "cake", "ack_filter": True},
            "ack_filter: unknown field; `queue: {tc: cake WORDS}` takes ca",
        ),
        ({"delay_ms": {"schedule": [[0, 1]]}}, "1]]}; delay has a schedule (docs"),
        ({"queue_packets": {"schedule": [[0, 1]]}}, "1]]}; queue_limit has a schedule (docs"),
        ({"aqm": "htb"}, "got 'htb'; `queue: {tc: WORDS}` takes tc's own words (do"),
    ],
)
def test_effects_that_links_lack(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    """A field of another tool's effect is refused with the equivalent, and limits.md is named."""
    directions = {"forward": {**LINE, **changes}, "reverse": LINE}
    said = _vet(tmp_path, profile={"directions": directions})
    assert problem in said
    assert "docs/limits.md" in said


def test_effects_that_flows_lack(tmp_path: Path) -> None:
    """MPTCP, DSCP and NODELAY as fields of a flow are refused with the place that has them."""
    said = _vet(tmp_path, flows=[_flow(mptcp=True, dscp=46, nodelay=True)])
    assert "flows.0.nodelay: unknown field; `socket: {nodelay: true}` of a flow has opti" in said
    assert "flows.0.mptcp: unknown field; commands in `setup` make it with `kernel: wide`" in said
    assert "flows.0.dscp: unknown field; `socket: {dscp: 46}` of a flow and `datagrams`" in said


def test_a_profile_may_be_its_fields(tmp_path: Path) -> None:
    """`profile` may be the fields of a profile, which axes set as those of a file."""
    axis = {"set": ["profile.forward.queue_packets"], "to": [5, 9]}
    fields = {**SMALL, "profile": LINES, "matrix": {"queue": axis}}
    path = write_experiment(tmp_path, fields)
    point = load_point(f"{path}@queue=9")
    queues = {name: each.queue_packets for name, each in point.profile.directions.items()}
    assert queues == {"forward": 9, "reverse": 50}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"rate_mbit": -1}, "rate_mbit: must be greater than or equal"),
        ({"rate_kbit": 9}, 'rate_kbit: unknown field; did you mean "ra'),
        ({"loss": {"every": 2, "percent": 1}}, "loss: takes one of perc"),
        ({"delay_ms": 0.001}, "delay_ms: tc sets netem's delay in whole"),
    ],
)
def test_wrong_fields_of_an_experiments_profile(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    """A wrong field of a profile within an experiment's file is named with its whole path."""
    directions = {"forward": {**LINE, **changes}, "reverse": LINE}
    said = _vet(tmp_path, profile={"directions": directions})
    assert f"small.yml: profile.directions.forward.{problem}" in said


def test_a_topology_may_be_its_name(tmp_path: Path) -> None:
    """`topology: two_node` is the topology of that name; a wrong name is refused as one."""
    named = {**SMALL, "topology": "two_node"}
    assert load_point(str(write_experiment(tmp_path, named))).experiment.topology.name == "two_node"
    assert 'no such topology; did you mean "two_node"?' in _vet(tmp_path, topology="two_nod")
    axis = {"set": ["topology.parameters.switches"], "to": [1]}
    path = write_experiment(tmp_path, {**named, "matrix": {"n": axis}})
    with pytest.raises(SpecError) as raised:
        load_point(f"{path}@n=1")
    assert "leads to no field" not in str(raised.value)


@pytest.mark.parametrize(
    ("of_first", "of_second", "problem"),
    [
        ({"cubic": {"hystart": 0}}, {"cubic": {"hystart": 0}}, ""),
        ({"cubic": {"hystart": 0}}, {"congestion": "bbr"}, ""),
        (
            {"cubic": {"hystart": 0}},
            {"cubic": {"hystart": 1}},
            "one value holds for all flows of a run, flows.0.cubic.hystart is 0, got 1",
        ),
        ({}, {"cubic": {"beta": 512}}, "flows.0.cubic.beta: one value holds for all flows of a r"),
        ({}, {"cubic": {"hystartt": 0}}, "flows.1.cubic.hystartt: no such parameter; tcp_cubic ha"),
        ({}, {"cubic": {"hystart": "no"}}, "flows.1.cubic.hystart: must be a whole number of 32 b"),
        ({}, {"vegas": {"alpha": 2}}, "flows.1.vegas: the flow's congestion is cubic"),
        ({}, {"reno": {"alpha": 2}}, "flows.1.reno: unknown field"),
    ],
)
def test_parameters_of_a_flows_control(
    tmp_path: Path, of_first: dict[str, Any], of_second: dict[str, Any], problem: str
) -> None:
    """Flows give parameters of their control; different ones are refused."""
    flow = {"name": "a", "from": "h1", "to": "h2", "congestion": "cubic"}
    flows = [{**flow, **of_first}, {**flow, "name": "b", **of_second}]
    if problem:
        assert problem in _vet(tmp_path, flows=flows)
    else:
        path = write_experiment(tmp_path, {**SMALL, "flows": flows})
        given = load_point(str(path)).experiment.parameters
        assert given == {"tcp_cubic": {"hystart": 0}}


def test_parameters_of_the_kernels_own_controls(tmp_path: Path) -> None:
    """A control's parameters are its own, and a flow of some point of the sweep must have it."""
    flow = {"name": "f", "from": "h1", "to": "h2", "congestion": "cubic"}
    modules = {
        "tcp_cubic": {"hystart": 0, "hystartt": 1, "beta": "x", "fast_convergence": 2**32},
        "tcp_vegas": {"alpha": 2},
    }
    said = _vet(tmp_path, flows=[flow], modules=modules)
    assert "modules.tcp_cubic.hystart:" not in said
    assert "modules.tcp_cubic.hystartt: no such parameter; tcp_cubic has beta, " in said
    assert "modules.tcp_cubic.beta: must be a whole number of 32 bits, got 'x'" in said
    assert "modules.tcp_cubic.fast_convergence: must be a whole number of 32 bits" in said
    assert "modules.tcp_vegas: no flow uses it; in use: tcp_cubic" in said
    program = {"name": "it", "host": "h1", "command": ["true"]}
    fields = {"flows": [flow], "programs": [program], "modules": {"tcp_vegas": {"alpha": 2}}}
    assert load_point(str(write_experiment(tmp_path, {**SMALL, **fields})))
    axis = {"set": ["flows.f.congestion"], "to": ["cubic", "fast", "vegas"]}
    modules = {"tcp_vegas": {"alpha": 2}, "tcp_fast": {"gamma": 1}, "tcp_yeah": {}}
    said = _vet(tmp_path, flows=[flow], modules=modules, matrix={"control": axis})
    assert "modules.tcp_vegas" not in said
    assert "modules.tcp_fast" not in said
    assert "modules.tcp_yeah: no flow uses it; in use: tcp_cubic, tcp_fast, tcp_vegas" in said


def test_parameters_of_modules_that_nobody_uses(tmp_path: Path) -> None:
    """A module parameter is refused if no flow uses its module, or if flows set it themselves."""
    said = _vet(tmp_path, modules={"tcp_fast": {"gamma": 1}, "tcp_fixed": {"windows": "3"}})
    assert "modules.tcp_fast: no flow uses it; in use: tcp_fixed" in said
    assert "modules.tcp_fixed.windows: set by the flows' window_packets" in said

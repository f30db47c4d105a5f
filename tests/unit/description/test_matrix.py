"""Sweeps in files: their points, and every mistake by its name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.running import CLAIMED, SMALL, problems_of, write_experiment

from twoway.contract.plan import SetSysctls
from twoway.description.point import Point, point_names
from twoway.errors import SpecError
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

WINDOW = {"set": ["flows.left.window_packets", "flows.right.window_packets"], "to": [4, 8]}
DELAY = {"set": ["profile.forward.delay_ms"], "to": [0.8, 1.6]}


def _swept(folder: Path, **fields: Any) -> str:
    document = {**SMALL, "matrix": {"window": WINDOW, "delay": DELAY}, **fields}
    return str(write_experiment(folder, document))


def test_points_are_the_product_of_the_axes(tmp_path: Path) -> None:
    """Every combination is a point; the last axis varies fastest."""
    path = _swept(tmp_path)
    assert point_names(path) == [
        f"{path}@window={window},delay={delay}" for window in (4, 8) for delay in (0.8, 1.6)
    ]


def test_a_point_sets_flows_and_profile(tmp_path: Path) -> None:
    """A point sets its values in flows, and in one direction of the profile only."""
    point = load_point(f"{_swept(tmp_path)}@window=8,delay=1.6")
    assert point.id == "small@window=8,delay=1.6"
    assert [flow.window_packets for flow in point.experiment.flows] == [8, 8]
    assert point.profile.directions["forward"].delay_ms == 1.6
    assert point.profile.directions["reverse"].delay_ms == 8.416


def test_a_list_has_a_value_for_each_field(tmp_path: Path) -> None:
    """A list on an axis has a value for each of the axis's fields, and its name has them all."""
    matrix = {"window": {**WINDOW, "to": [[4, 9]]}}
    point = load_point(f"{_swept(tmp_path, matrix=matrix)}@window=4+9")
    assert [flow.window_packets for flow in point.experiment.flows] == [4, 9]


def test_a_name_stands_for_a_list(tmp_path: Path) -> None:
    """A named list sets its values; the point and `at` use the name."""
    matrix = {"window": {**WINDOW, "to": {"even": [4, 4], 9: [4, 9]}}}
    said = {**CLAIMED, "at": {"window": 9}, "elsewhere": "one is enough"}
    silent = {"at": {"window": "even"}, "why": "one is enough"}
    path = _swept(tmp_path, matrix=matrix, claims=[said], unclaimed=[silent])
    assert point_names(path) == [f"{path}@window=even", f"{path}@window=9"]
    assert not load_point(f"{path}@window=even").claims
    point = load_point(f"{path}@window=9")
    assert [flow.window_packets for flow in point.experiment.flows] == [4, 9]
    assert point.claims


LATE = {"drop": {"flow": "left", "from_s": 0.1}}
PROGRAM = {"name": "it", "host": "h1", "command": ["true"]}
TTL, RETRIES = "net.ipv4.ip_default_ttl", "net.ipv4.tcp_retries2"
HALF_DUPLEX = {"profile": "half-duplex", "stack": {"mtu_bytes": 1500}}
# A field of an experiment, the value that an axis gives it, and the place in a point that has it.
REACHED: list[tuple[str, Any, Callable[[Any], Any]]] = [
    ("observe.tcp_info_ms", 5, lambda at: at.experiment.observe.tcp_info_ms),
    ("interventions.0.drop.from_s", 0.3, lambda at: at.experiment.interventions[0].drop.from_s),
    ("stack.preset", "linux", lambda at: at.experiment.stack.preset),
    ("hosts.h2.stack.preset", "linux", lambda at: at.experiment.stack_of("h2").preset),
    ("hosts.h1.qdisc", "fq", lambda at: at.experiment.hosts["h1"].qdisc.tc),
    ("flows.left.socket.mss_bytes", 536, lambda at: at.flows["left"].socket.mss_bytes),
    ("routers.r1.setup", {"some": "ip route"}, lambda at: next(at.experiment.setup_lines).text),
    ("programs.it.command", {"two": ["echo", "-c"]}, lambda at: at.experiment.programs[0].command),
    ("profile.half_duplex.turn_packets", 3, lambda at: at.profile.half_duplex.turn_packets),
    (f"stack.sysctls.{RETRIES}", 5, lambda at: _sysctl(at, "h2", RETRIES)),
    (f"hosts.h1.stack.sysctls.{RETRIES}", 5, lambda at: _sysctl(at, "h1", RETRIES)),
    (f"routers.r1.sysctls.{TTL}", 9, lambda at: _sysctl(at, "r1", TTL)),
]


def _sysctl(point: Point, node: str, name: str) -> Any:
    steps = (step for step in build_plan(point).setup if isinstance(step, SetSysctls))
    return next(step.sysctls[name] for step in steps if step.node == node)


@pytest.mark.parametrize(("field", "value", "found"), REACHED)
def test_an_axis_reaches_any_field(
    tmp_path: Path, field: str, value: Any, found: Callable[[Any], Any]
) -> None:
    """An axis sets fields of any part, also of one left out; interventions have numbers."""
    fields = HALF_DUPLEX if "half_duplex" in field else {}
    others = {"interventions": [LATE], "programs": [PROGRAM], **fields}
    matrix = {"x": {"set": [field], "to": value if isinstance(value, dict) else [value]}}
    (name,) = point_names(_swept(tmp_path, matrix=matrix, **others))
    expected = next(iter(value.values())) if isinstance(value, dict) else value
    assert found(load_point(name)) == expected


def test_claims_are_of_the_points_they_name(tmp_path: Path) -> None:
    """A claim with `at` applies to the points that have those values of an axis."""
    said = {**CLAIMED, "at": {"window": 8, "delay": [0.8, 1.6]}, "elsewhere": "enough"}
    path = _swept(tmp_path, claims=[said], unclaimed=[{"at": {"window": 4}, "why": "enough"}])
    assert [len(load_point(name).claims) for name in point_names(path)] == [0, 0, 1, 1]


NAME_EACH = "name each value, as in `to: {first: VALUE, second: VALUE}`"
TWICE = ["fq", "fq maxrate 4mbit"]


def _axis(field: str, *values: Any) -> dict[str, Any]:
    """Return a sweep of one axis, x."""
    return {"matrix": {"x": {"set": [field], "to": [*values]}}}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"matrix": {"window": {**WINDOW, "to": [4, [1, 2, 3]]}}},
            "matrix.window.to.1: 3 values for 2 fields of set",
        ),
        ({"matrix": {"window": {**WINDOW, "to": [4, 4]}}}, "matrix.window.to: 4 is given twice"),
        (
            _axis("hosts.h1.qdisc", *TWICE),
            f"matrix.x.to: {TWICE[1]!r} cannot be part of a point's name; {NAME_EACH}, got {TWICE}",
        ),
        (
            _axis("title", "a", "b" * 300),
            f"matrix: a point's name must have at most 180 characters, got 302: x={'b' * 78}",
        ),
        ({"matrix": {"a": DELAY, "b": DELAY}}, "matrix: profile.forward.delay_ms is set twice"),
        (
            {"matrix": {"window": {**WINDOW, "to": [4, 0]}}},
            "point window=0: flows.0.window_packets: must be greater than or equal to 1, got 0",
        ),
        (
            _axis("flows.middle.count", 2),
            'matrix.x.set.0: flows.middle.count: no "middle"; there are: left, right',
        ),
        (
            _axis("interventions.1.drop.from_s", 2) | {"interventions": [LATE]},
            'matrix.x.set.0: interventions.1.drop.from_s: no "1"; there are: 0',
        ),
        (
            _axis("programs.it.command.0.x", 2) | {"programs": [PROGRAM]},
            "matrix.x.set.0: programs.it.command.0.x: leads to no field",
        ),
        (
            _axis("stack.mtu", 2000, 3000),
            'matrix.x.set.0: stack.mtu: unknown field; did you mean "mtu_bytes"?',
        ),
        (
            {"matrix": {"x": {"set": ["duration_s", "flows.left.windows"], "to": [2]}}},
            "matrix.x.set.1: flows.left.windows: unknown field",
        ),
        (
            _axis("profile.forward.rates_mbit", 2, 3),
            'matrix.x.set.0: profile.forward.rates_mbit: unknown field; did you mean "rate_mbit"?',
        ),
        (
            _axis("profile.sideways.delay_ms", 2),
            'matrix.x.set.0: directions.sideways.delay_ms: no "sideways"; there are: forward',
        ),
        (
            {"figures": [{"y": "goodputs", "x": "rtt_p95"}]},
            'point window=4,delay=0.8: figures.0.y: no metric "goodputs"; did you mean "goodput"?',
        ),
        ({"figures": [{"y": "goodput", "x": "rtt_p95.left"}]}, "figures.0.x: must be"),
        (
            {"figures": [{"y": "goodput", "x": "rtt_p95", "for_each": "buffer"}]},
            'point window=4,delay=0.8: figures.0.for_each: no axis "buffer" in matrix',
        ),
    ],
)
def test_mistakes_are_named(tmp_path: Path, fields: dict[str, Any], problem: str) -> None:
    """Each mistake in a sweep is refused with field and value, and with its point, if any."""
    assert any(found.startswith(problem) for found in problems_of(_swept(tmp_path, **fields)))


def test_unknown_point(tmp_path: Path) -> None:
    """A point that the matrix does not have is refused, with the values of each axis."""
    with pytest.raises(SpecError) as caught:
        load_point(f"{_swept(tmp_path)}@window=5")
    assert 'no point "window=5"' in str(caught.value)
    assert caught.value.hint == "4 points combine window=4, 8; delay=0.8, 1.6"


def test_values_of_some_axes_name_points(tmp_path: Path) -> None:
    """A name with values of some axes, in any order, stands for all points with these values."""
    file = str(_swept(tmp_path))
    both = [f"{file}@window=8,delay=0.8", f"{file}@window=8,delay=1.6"]
    assert point_names(f"{file}@window=8") == both
    assert point_names(f"{file}@delay=1.6,window=8") == both[1:]
    named = load_point(f"{file}@seed=2,delay=1.6,window=8")
    assert named.id == f"{Path(file).stem}@window=8,delay=1.6,seed=2"
    assert point_names(f"{file}@window=8,seed=3") == [f"{name},seed=3" for name in both]
    assert point_names(f"{file}@delay=1.6", 1) == [
        f"{file}@window={n},delay=1.6,seed=1" for n in (4, 8)
    ]
    assert len(point_names(f"{file}@seed=3")) == 4
    for wrong in ("window=5", "window=8,delay=0.8,delay=1.6", "8", "window"):
        with pytest.raises(SpecError, match="no point"):
            point_names(f"{file}@{wrong}")

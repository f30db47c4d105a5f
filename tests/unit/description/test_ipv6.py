"""The version of IP: refusals, and its effects on a plan."""

import re
from pathlib import Path
from typing import Any

import pytest
from support.running import SMALL, problems_of, write_experiment

from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

LEFT, RIGHT = SMALL["flows"]
PREDICTED = {
    "theory": "kalampoukas",
    "predictions": [
        {"metric": "efficiency.left", "value": "theory", "tolerance": 1, "why": "for tests"}
    ],
}


def _problems(folder: Path, **fields: Any) -> list[str]:
    return problems_of(str(write_experiment(folder, {**SMALL, **fields})))


@pytest.mark.parametrize(
    ("fields", "problems"),
    [
        ({"stack": {"ip": 5}}, ["stack.ip: must be 4 or 6, got 5"]),
        (
            {"stack": {"ip": 6, "mtu_bytes": 1279}},
            ["stack.mtu_bytes: IPv6 needs 1280 at least, got 1279"],
        ),
        ({"stack": {"ip": 6, "mtu_bytes": 1280}}, []),
        (
            {"flows": [LEFT, {**RIGHT, "ip": 6}], **PREDICTED},
            ["flows.1.ip: theories have the headers of one version, stack.ip (4), got 6"],
        ),
        ({"flows": [LEFT, {**RIGHT, "ip": 4}], **PREDICTED}, []),
        (
            {
                "stack": {"ip": 6},
                "datagrams": [
                    {"name": "u", "from": "h1", "to": "h2", "rate_mbit": 1, "packet_bytes": 55}
                ],
            },
            ["datagrams.0.packet_bytes: must be at least 56 in IPv6, got 55"],
        ),
    ],
)
def test_wrong_ipv6_names_its_field(
    fields: dict[str, Any], problems: list[str], tmp_path: Path
) -> None:
    """Each mistake is refused with its field and value."""
    assert _problems(tmp_path, **fields) == problems


def test_headers_are_20_bytes_longer(tmp_path: Path) -> None:
    """A window in segments gives IPv6's route 20 bytes less per segment than IPv4's."""
    stack = {"mtu_bytes": 9180, "ip": 6, "receive_window_packets": 10}
    point = load_point(str(write_experiment(tmp_path, {**SMALL, "stack": stack})))
    routes = [
        line
        for step in build_plan(point).setup
        for line in getattr(step, "stdin", ())
        if line.startswith("route replace default") and "h1" in line
    ]
    assert [route.rpartition("window ")[2] for route in routes] == ["91400", "91200"]
    assert ["fd00::" in route for route in routes] == [False, True]


def test_without_ipv6_a_plan_turns_it_off(tmp_path: Path) -> None:
    """A plan with only IPv4 has no IPv6 address and switches IPv6 off."""
    plan = build_plan(load_point(str(write_experiment(tmp_path, SMALL)))).model_dump_json()
    assert ("fd00" in plan, "sleep" in plan) == (False, False)
    settings = set(re.findall(r'"net\.ipv6\.([^"]*)":([^,}]*)', plan))
    assert settings == {("conf.all.disable_ipv6", "1"), ("conf.default.disable_ipv6", "1")}

"""The version of IP: refusals, effects on a plan, and routes of both versions."""

import re
from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.running import SMALL, problems_of, write_experiment

from twoway.contract.routing import ITSELF, Routes
from twoway.description.addresses import IPV6_PREFIX, network_in_ipv6
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
    return problems_of(write_experiment(folder, {**SMALL, **fields}))


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


# The longest prefix of a destination decides where packets leave a node.


# Few addresses, so that prefixes contain one another.
ADDRESSES = st.integers(min_value=0, max_value=15).map(lambda low: (10 << 24) | low)
NETWORKS = st.tuples(ADDRESSES, st.sampled_from((0, 8, 29, 30, 31, 32))).map(
    lambda each: IPv4Network(each, strict=False)
)


def test_the_longest_prefix_decides() -> None:
    """A host route wins over a network's, which wins over the default; IPv6 has the same order."""
    table = {
        "0.0.0.0/0": "up",
        "10.1.0.0/16": "left",
        "10.1.2.0/24": "right",
        "10.1.2.1/32": ITSELF,
    }
    routes = Routes(table | {"fd00::/64": "six"})
    found = {
        each: routes.interface_to(each) for each in ("10.2.0.1", "10.1.0.1", "10.1.2.3", "10.1.2.1")
    }
    assert list(found.values()) == ["up", "left", "right", ITSELF]
    assert (routes.interface_to("fd00::1"), routes.interface_to("fe80::1")) == ("six", None)


@given(st.dictionaries(NETWORKS, st.sampled_from("abc")), ADDRESSES)
def test_routes_are_those_of_a_search(table: dict[IPv4Network, str], low: int) -> None:
    """A look-up finds the same as a search through all prefixes, in both versions of IP."""
    address, twin = ip_address(low), ip_address(IPV6_PREFIX | low)
    held = sorted((n.prefixlen, name) for n, name in table.items() if address in n)
    expected = held[-1][1] if held else None
    assert (
        Routes({str(n): name for n, name in table.items()}).interface_to(str(address)) == expected
    )
    twins: dict[IPv6Network, str] = {network_in_ipv6(n): name for n, name in table.items()}
    assert Routes({str(n): name for n, name in twins.items()}).interface_to(str(twin)) == expected

"""Sysctls of an experiment are checked before it runs."""

from pathlib import Path
from typing import Any

import pytest
from support.running import SMALL, problems_of, write_experiment

from twoway.contract.plan import SetSysctls
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

MAX = "net.ipv4.tcp_max_reordering"
REORDERING = {"net.ipv4.tcp_reordering": 500, MAX: 1000}
STACK, H1, H2 = ("stack",), ("hosts", "h1", "stack"), ("hosts", "h2", "stack")
R1 = ("routers", "r1")
LACKS = "no namespace of the guest's kernel has it"
WHOLE, OF_ALL = "one value holds for the whole kernel", "stack.sysctls has it"


def _set(place: tuple[str, ...], name: str, value: Any) -> dict[str, Any]:
    """Return the fields of an experiment that set a sysctl at a place."""
    found: dict[str, Any] = {"sysctls": {name: value}}
    for key in reversed(place):
        found = {key: found}
    return found


@pytest.mark.parametrize(
    ("place", "name", "value", "problem"),
    [
        (
            *(STACK, "net.ipv4.tcp_retires2", 5),
            f'{LACKS}; did you mean "net.ipv4.tcp_retries2"?',
        ),
        (STACK, "net.ipv4.tcp_retries2", 256, "must be a whole number from 0 to 255, got 256"),
        (STACK, "net.ipv4.tcp_retries2", "many", "must be a whole number from 0 to 255, got many"),
        (H1, "net.core.rmem_max", 1, f"{WHOLE}: {OF_ALL}"),
        (STACK, "net.ipv4.tcp_ehash_entries", 1, f"{WHOLE}, which nothing can set"),
        (
            *(STACK, "net.ipv4.tcp_reordering", 301),
            f"must be a whole number from 1 to 300 ({MAX}), got 301",
        ),
        (STACK, "net.ipv4.tcp_timestamps", 1, "the field stack.timestamps sets it"),
        (STACK, "net.core.default_qdisc", "fq", "the field hosts.HOST.qdisc sets it"),
        (R1, "net.core.dev_weight", 1, f"{WHOLE}: {OF_ALL}"),
        (H2, "net.ipv4.nothing", 1, LACKS),
        (R1, "net.ipv4.ip_default_ttl", 0, "must be a whole number from 1 to 255, got 0"),
    ],
)
def test_a_mistake_has_a_sentence(
    tmp_path: Path, place: tuple[str, ...], name: str, value: Any, problem: str
) -> None:
    """A sysctl that the guest's kernel lacks or refuses has a sentence with field and value."""
    path = write_experiment(tmp_path, {**SMALL, **_set(place, name, value)})
    assert f"{'.'.join(place)}.sysctls.{name}: {problem}" in problems_of(path)


def test_a_router_is_one_of_the_topology(tmp_path: Path) -> None:
    """A host cannot have the fields of a router."""
    path = write_experiment(tmp_path, {**SMALL, "routers": {"h1": {}}})
    assert 'routers.h1: no router "h1"; the topology has r1, r2' in problems_of(path)


@pytest.mark.parametrize(
    "name", ["kernel.panic", "net.ipv4/tcp_sack", "net..ipv4", "net", "net.ipv4.../../kernel"]
)
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    """A name that is no name of a setting under net, or a path, is refused as it is read."""
    (problem,) = problems_of(write_experiment(tmp_path, {**SMALL, "stack": {"sysctls": {name: 1}}}))
    assert "a name that begins with net., with dots" in problem


def test_a_sysctl_bounds_another(tmp_path: Path) -> None:
    """tcp_reordering may exceed 300 where tcp_max_reordering, which the guest sets first, does."""
    document = {**SMALL, "stack": {"sysctls": REORDERING}}
    later = [
        {"set": {"host": "h1", "at_s": at_s, "sysctls": {f"net.ipv4.tcp_{name}": value}}}
        for at_s, name, value in ((0.6, "reordering", 1900), (0.5, "max_reordering", 2000))
    ]
    path = write_experiment(tmp_path, {**document, "interventions": later})
    assert problems_of(path) == []
    less = {**document, **_set(H1, "net.ipv4.tcp_reordering", 1001)}
    (problem,) = problems_of(write_experiment(tmp_path, less, "less"))
    assert problem.startswith("hosts.h1.stack.sysctls.net.ipv4.tcp_reordering: must be a whole ")
    assert problem.endswith(f"from 1 to 1000 ({MAX}), got 1001")
    plan = build_plan(load_point(str(path)))
    steps = {step.node: step.sysctls for step in plan.setup if isinstance(step, SetSysctls)}
    assert [name for name in steps["h1"] if "reordering" in name] == sorted(REORDERING)


def test_an_interface_has_the_settings_of_any_other(tmp_path: Path) -> None:
    """A setting of one interface is known by those of every interface."""
    sysctls = {"net.ipv4.conf.h1-eth0.rp_filter": 1}
    path = write_experiment(tmp_path, {**SMALL, "hosts": {"h1": {"stack": {"sysctls": sysctls}}}})
    assert problems_of(path) == []

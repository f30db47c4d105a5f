"""Sysctls of an experiment are checked before it runs."""

from pathlib import Path
from typing import Any

import pytest
from support.running import SMALL, problems_of, write_experiment

from twoway.contract.plan import SetSysctls
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

REORDERING = {"net.ipv4.tcp_reordering": 500, "net.ipv4.tcp_max_reordering": 1000}
LESS = {"net.ipv4.tcp_reordering": 1001}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"stack": {"sysctls": {"net.ipv4.tcp_retires2": 5}}},
            (
                "stack.sysctls.net.ipv4.tcp_retires2: no namespace of the guest's kernel has it; "
                'did you mean "net.ipv4.tcp_retries2"?'
            ),
        ),
        (
            {"stack": {"sysctls": {"net.ipv4.tcp_retries2": 256}}},
            "stack.sysctls.net.ipv4.tcp_retries2: must be a whole number from 0 to 255, got 256",
        ),
        (
            {"stack": {"sysctls": {"net.ipv4.tcp_retries2": "many"}}},
            "stack.sysctls.net.ipv4.tcp_retries2: must be a whole number from 0 to 255, got many",
        ),
        (
            {"hosts": {"h1": {"stack": {"sysctls": {"net.core.rmem_max": 1}}}}},
            (
                "hosts.h1.stack.sysctls.net.core.rmem_max: one value holds for the whole kernel: "
                "stack.sysctls has it"
            ),
        ),
        (
            {"stack": {"sysctls": {"net.ipv4.tcp_ehash_entries": 1}}},
            (
                "stack.sysctls.net.ipv4.tcp_ehash_entries: one value holds for the whole kernel, "
                "which nothing can set"
            ),
        ),
        (
            {"stack": {"sysctls": {"net.ipv4.tcp_reordering": 301}}},
            (
                "stack.sysctls.net.ipv4.tcp_reordering: must be a whole number from 1 to 300 "
                "(net.ipv4.tcp_max_reordering), got 301"
            ),
        ),
        (
            {"stack": {"sysctls": REORDERING}, "hosts": {"h1": {"stack": {"sysctls": LESS}}}},
            (
                "hosts.h1.stack.sysctls.net.ipv4.tcp_reordering: must be a whole number from 1 to "
                "1000 (net.ipv4.tcp_max_reordering), got 1001"
            ),
        ),
        (
            {"stack": {"sysctls": {"net.ipv4.tcp_timestamps": 1}}},
            "stack.sysctls.net.ipv4.tcp_timestamps: the field stack.timestamps sets it",
        ),
        (
            {"stack": {"sysctls": {"net.core.default_qdisc": "fq"}}},
            "stack.sysctls.net.core.default_qdisc: the field hosts.HOST.qdisc sets it",
        ),
        (
            {"routers": {"r1": {"sysctls": {"net.core.dev_weight": 1}}}},
            (
                "routers.r1.sysctls.net.core.dev_weight: one value holds for the whole kernel: "
                "stack.sysctls has it"
            ),
        ),
        (
            {"hosts": {"h2": {"stack": {"sysctls": {"net.ipv4.nothing": 1}}}}},
            "hosts.h2.stack.sysctls.net.ipv4.nothing: no namespace of the guest's kernel has it",
        ),
        (
            {"routers": {"r1": {"sysctls": {"net.ipv4.ip_default_ttl": 0}}}},
            (
                "routers.r1.sysctls.net.ipv4.ip_default_ttl: must be a whole number from 1 to 255, "
                "got 0"
            ),
        ),
        ({"routers": {"h1": {}}}, 'routers.h1: no router "h1"; the topology has r1, r2'),
    ],
)
def test_a_mistake_has_a_sentence(tmp_path: Path, fields: dict[str, Any], problem: str) -> None:
    """A sysctl that the guest's kernel lacks or refuses has a sentence with field and value."""
    assert problem in problems_of(str(write_experiment(tmp_path, {**SMALL, **fields})))


@pytest.mark.parametrize(
    "name", ["kernel.panic", "net.ipv4/tcp_sack", "net..ipv4", "net", "net.ipv4.../../kernel"]
)
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    """A name that is no name of a setting under net, or a path, is refused as it is read."""
    path = write_experiment(tmp_path, {**SMALL, "stack": {"sysctls": {name: 1}}})
    (problem,) = problems_of(str(path))
    assert "a name that begins with net., with dots" in problem


def test_a_sysctl_bounds_another(tmp_path: Path) -> None:
    """tcp_reordering may exceed 300 where tcp_max_reordering, which the guest sets first, does."""
    document = {**SMALL, "stack": {"sysctls": REORDERING}}
    later = [
        {"set": {"host": "h1", "at_s": at_s, "sysctls": {f"net.ipv4.tcp_{name}": value}}}
        for at_s, name, value in ((0.6, "reordering", 1900), (0.5, "max_reordering", 2000))
    ]
    path = write_experiment(tmp_path, {**document, "interventions": later})
    assert problems_of(str(path)) == []
    plan = build_plan(load_point(str(path)))
    steps = {step.node: step.sysctls for step in plan.setup if isinstance(step, SetSysctls)}
    assert [name for name in steps["h1"] if "reordering" in name] == sorted(REORDERING)


def test_an_interface_has_the_settings_of_any_other(tmp_path: Path) -> None:
    """A setting of one interface is known by those of every interface."""
    sysctls = {"net.ipv4.conf.h1-eth0.rp_filter": 1}
    path = write_experiment(tmp_path, {**SMALL, "hosts": {"h1": {"stack": {"sysctls": sysctls}}}})
    assert problems_of(str(path)) == []


def test_another_kernel_is_not_judged(tmp_path: Path) -> None:
    """A kernel that is not the guest's has no list, and judges a sysctl as it runs."""
    stack = {"sysctls": {"net.ipv4.tcp_of_tomorrow": 1}}
    path = write_experiment(tmp_path, {**SMALL, "kernel": "newest", "stack": stack})
    assert problems_of(str(path)) == []


def test_a_sweep_sets_a_sysctl(tmp_path: Path) -> None:
    """A sysctl is an axis of a sweep like any field, for all hosts, a host or a router."""
    axes = {
        "retries": {"set": ["stack.sysctls.net.ipv4.tcp_retries2"], "to": [3, 5]},
        "ttl": {"set": ["routers.r1.sysctls.net.ipv4.ip_default_ttl"], "to": [9]},
        "cork": {"set": ["hosts.h1.stack.sysctls.net.ipv4.tcp_autocorking"], "to": [1]},
    }
    path = write_experiment(tmp_path, {**SMALL, "matrix": axes})
    plan = build_plan(load_point(f"{path}@retries=5,ttl=9,cork=1"))
    steps = {step.node: step.sysctls for step in plan.setup if isinstance(step, SetSysctls)}
    assert steps["h1"]["net.ipv4.tcp_retries2"] == steps["h2"]["net.ipv4.tcp_retries2"] == 5
    assert (steps["h1"]["net.ipv4.tcp_autocorking"], steps["h2"]["net.ipv4.tcp_autocorking"]) == (
        1,
        0,
    )
    assert steps["r1"]["net.ipv4.ip_default_ttl"] == 9
    assert "net.ipv4.tcp_retries2" not in steps["r1"]

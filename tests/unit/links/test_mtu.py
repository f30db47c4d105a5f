"""A link's own MTU: that of the interface which sends into it, or a black hole."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.plans import planned
from support.running import LINUX, problems_of, write_experiment

from twoway.contract.plan import Check
from twoway.links.direction import Direction

LINE = {"rate_mbit": 8, "delay_ms": 8, "queue_packets": 20}


def with_mtu(mtu_bytes: Any, stack: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """Return an experiment whose first direction has an MTU."""
    directions = {"forward": {**LINE, "mtu_bytes": mtu_bytes, **fields}, "reverse": LINE}
    stack = {"preset": "linux", **(stack or {})}
    return {**LINUX, "stack": stack, "profile": {"directions": directions}}


@pytest.mark.parametrize(
    ("mtu_bytes", "of_routes", "police"),
    [
        (1432, {"10.0.0.0/24", "default"}, []),
        ({"bytes": 1432, "icmp": False}, set(), ["police mtu 1446"]),
    ],
)
def test_the_routes_over_the_link(
    tmp_path: Path, mtu_bytes: Any, of_routes: set[str], police: list[str]
) -> None:
    """Only routes over the interface that sends into the direction have its MTU, or it polices."""
    plan = planned(tmp_path, with_mtu(mtu_bytes))
    steps = [step for step in plan.setup if isinstance(step, Check)]
    lines = [line for step in steps for line in step.stdin]
    links = [line.split() for line in lines if line.startswith("link") and " mtu " in line]
    assert {words[5] for words in links} == {"1500"}
    assert {line.split()[2] for line in lines if line.endswith("mtu lock 1432")} == of_routes
    assert [line.split("action ")[1][:15] for line in lines if "action" in line] == police


def test_which_drops_the_qdiscs_count() -> None:
    """Frames above the MTU are refused; only a black hole's drops are in the qdisc's counter."""
    sizes = np.array([1446, 1447])
    for icmp in (True, False):
        mtu = {"bytes": 1432, "icmp": icmp}
        elements = Direction.model_validate({**LINE, "mtu_bytes": mtu}).elements
        assert elements.refuse(sizes * 0, sizes).tolist() == [False, True]
        assert elements.refuse(sizes * 0, sizes, counted=False).tolist() == [False, icmp]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (with_mtu(1501), "forward.mtu_bytes: must be 68 to stack.mtu_bytes (1500), got 1501"),
        (with_mtu(60), "forward.mtu_bytes.bytes: must be greater than or equal to 68, got 60"),
        (
            with_mtu(1200, {"ip": 6}),
            "mtu_bytes: must be 1280 in IPv6 to stack.mtu_bytes (1500), go",
        ),
        (with_mtu("large"), "forward.mtu_bytes: must be fields with values"),
    ],
)
def test_an_mtu_that_cannot_be(tmp_path: Path, fields: dict[str, Any], problem: str) -> None:
    """An MTU above the hosts', or below IP's least, is refused with its field and value."""
    found = problems_of(write_experiment(tmp_path, fields))
    assert any(problem in each for each in found), found

"""Features that need the uml guest are refused elsewhere, by field."""

from pathlib import Path
from typing import Any

import pytest
from support.running import SMALL, write_experiment

from twoway.backends.backend import refuse_what_uml_has
from twoway.backends.uml import Uml
from twoway.errors import UsageError
from twoway.lab.multihost_plan import Place, shares
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point
from twoway.runs.run import run_experiment

PROGRAM = {"name": "it", "host": "h1", "command": ["true"]}


@pytest.mark.parametrize(
    ("profile", "fields"),
    [
        ("stepped-8-2mbit", ["directions.forward.rate"]),
        ("leo-20mbit", ["directions.forward.delay", "directions.reverse.delay"]),
        ("access-8mbit", []),
    ],
)
def test_each_field_is_named(tmp_path: Path, profile: str, fields: list[str]) -> None:
    """Another backend, and a run over several hosts, names all fields that need uml's guest."""
    document = SMALL | {"profile": profile, "programs": [PROGRAM], "stack": {"mtu_bytes": 1500}}
    point = load_point(str(write_experiment(tmp_path, document)))
    fields = [*fields, "programs.it"]
    with pytest.raises(UsageError) as caught:
        refuse_what_uml_has(build_plan(point), "qemu")
    assert str(caught.value).splitlines() == [
        f"{field}: not possible with the backend qemu; uml has it" for field in fields
    ]
    with pytest.raises(UsageError) as caught:
        shares(point, {"here": Place(nodes=["h1", "r1", "r2", "h2"], links={})})
    assert str(caught.value).splitlines()[: len(fields)] == [
        f"{point.id}: {field}: not possible on the hosts of a lab; uml has it" for field in fields
    ]


def test_parameters_of_the_kernel_are_named(tmp_path: Path) -> None:
    """Parameters of a control that is part of the kernel are for uml; those of our modules not."""
    flow = {"name": "f", "from": "h1", "to": "h2", "congestion": "cubic"}
    fixed = {**flow, "name": "g", "congestion": "fixed", "window_packets": 4}
    modules = {"tcp_cubic": {"hystart": 0}, "tcp_fixed": {}}
    document = SMALL | {"flows": [flow, fixed], "modules": modules}
    plan = build_plan(load_point(str(write_experiment(tmp_path, document))))
    with pytest.raises(UsageError) as caught:
        refuse_what_uml_has(plan, "qemu")
    assert str(caught.value) == (
        "modules.tcp_cubic: not possible with the backend qemu; uml has it"
    )
    steps = [step for step in plan.setup if step.kind == "set_parameters"]
    assert [(step.module, step.parameters) for step in steps] == [("tcp_cubic", {"hystart": "0"})]


def test_each_switch_is_named() -> None:
    """Another backend, and a run over several hosts, names all options that need uml's guest."""
    point = load_point("switches@ip=4,network=linuxrouter")
    fields = [f"topology.name: switch s{number}" for number in (1, 2, 3)]
    with pytest.raises(UsageError) as caught:
        refuse_what_uml_has(build_plan(point), "native")
    assert str(caught.value).splitlines() == [
        f"{field}: not possible with the backend native; uml has it" for field in fields
    ]
    with pytest.raises(UsageError) as caught:
        shares(point, {"here": Place(nodes=[*point.graph.nodes], links={})})
    assert str(caught.value).splitlines()[:3] == [
        f"{point.id}: {field}: not possible on the hosts of a lab; uml has it" for field in fields
    ]


# Instruments in the kernel are used in virtual time only.


@pytest.mark.parametrize(
    ("wanted", "field"),
    [({"capture": "kernel"}, "capture"), ({"observe": {"sampler": "kernel"}}, "observe.sampler")],
)
def test_a_backend_without_instruments_says_so(
    tmp_path: Path, wanted: dict[str, Any], field: str
) -> None:
    """Without virtual time the kernel's instruments are refused by field, and no folder is left."""
    point = load_point(str(write_experiment(tmp_path, {**SMALL, **wanted})))
    without = Uml(guest=None, name="native", in_kernel=False)  # type: ignore[arg-type]
    with pytest.raises(
        UsageError, match=f"small: {field}: kernel needs virtual time, which native"
    ):
        run_experiment(point, without, tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_backend_without_seeds_says_so(tmp_path: Path) -> None:
    """A seed is refused by a backend whose random numbers do not come from it."""
    point = load_point(str(write_experiment(tmp_path, {**SMALL, "seed": 2})))
    without = Uml(guest=None, name="native", in_kernel=False)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="small: seed: native has random numbers"):
        run_experiment(point, without, tmp_path / "results")

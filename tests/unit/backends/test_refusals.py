"""Fields that a backend refuses, and the kernel of a backend."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.running import SMALL, write_experiment
from support.warm_command import twoway

from twoway.backends.backend import refuse_what_uml_has
from twoway.backends.registry import find_backend, kinds
from twoway.backends.uml import Uml
from twoway.description.point import Point
from twoway.errors import UsageError
from twoway.guest.source import Patched, flavour_of, kernel_named, kernel_source
from twoway.lab.multihost_plan import Place, shares
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point
from twoway.runs.run import run_experiment

PROGRAM = {"name": "it", "host": "h1", "command": ["true"]}


def _refused_by_others(point: Point, fields: list[str]) -> None:
    """Check that other backends, and a run over several hosts, name these fields and no other."""
    plan = build_plan(point)
    for backend in ("qemu", "native"):
        with pytest.raises(UsageError) as caught:
            refuse_what_uml_has(plan, backend)
        assert str(caught.value).splitlines() == [
            f"{field}: not possible with the backend {backend}; uml has it" for field in fields
        ]
    with pytest.raises(UsageError) as caught:
        shares(point, {"here": Place(nodes=[*point.graph.nodes], links={})})
    assert str(caught.value).splitlines()[: len(fields)] == [
        f"{point.id}: {field}: not possible on the hosts of a lab; uml has it" for field in fields
    ]


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
    _refused_by_others(point, [*fields, "programs.it"])


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        (
            "switches@ip=4,network=linuxrouter",
            [f"topology.name: switch s{number}" for number in (1, 2, 3)],
        ),
        ("half-duplex-turns@turn=1", ["half_duplex"]),
    ],
)
def test_each_switch_and_medium_is_named(name: str, fields: list[str]) -> None:
    """Switches and a half-duplex link need uml's guest as well."""
    _refused_by_others(load_point(name), fields)


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


# The kernel of a backend: `--kernel`, and an experiment's `kernel`.


def _tree(folder: Path, version: str) -> Path:
    major, minor = version.split(".")
    (folder / "Makefile").write_text(f"VERSION = {major}\nPATCHLEVEL = {minor}\n")
    return folder


def test_names_of_kernels(tmp_path: Path) -> None:
    """A kernel's name is `guest`, `wide`, `newest-tun`, `6.1`, a folder, or one with a patch."""
    assert kernel_named(None) == "guest"
    assert all(kernel_named(name) == name for name in ("guest", "wide", "newest-tun", "6.1"))
    assert kernel_named(str(tmp_path)) == tmp_path
    patch = tmp_path / "a+b.diff"
    patch.touch()
    assert kernel_named(f"wide+{tmp_path}/a+b.diff") == Patched("wide", patch)
    for name in ("6.12", "guest+gone.diff", f"6.12+{patch}"):
        with pytest.raises(UsageError, match=r"must be guest, wide, newest, newest-tun, 6.1 or "):
            kernel_named(name)


@pytest.mark.parametrize(
    ("version", "flavour"),
    [("6.1", "6.1"), ("6.11", "6.1"), ("6.12", "guest"), ("7.2", "guest"), ("7.3", "newest")],
)
def test_a_tree_is_patched_by_its_version(tmp_path: Path, version: str, flavour: str) -> None:
    """A kernel tree gets the patches of 6.1, from 6.12 on the guest's, from 7.3 the newest's."""
    assert flavour_of(_tree(tmp_path, version)) == flavour
    assert kernel_source(tmp_path).path == tmp_path


@pytest.mark.parametrize("backend", [name for name in kinds() if name != "uml"])
def test_other_backends_have_a_kernel_of_their_own(backend: str) -> None:
    """Every backend but uml refuses `--kernel` before it looks at the machine."""
    with pytest.raises(UsageError, match=f"kernel: the backend {backend} has its own kernel"):
        find_backend(backend, "newest")


@pytest.mark.usefixtures("guest")
def test_a_kernel_that_is_not_built_is_named(tmp_path: Path) -> None:
    """A run on a kernel that was not built says how to build it, and leaves nothing."""
    tree = _tree(tmp_path, "6.12")
    experiment = write_experiment(tmp_path, {**SMALL, "kernel": str(tree)})
    done = twoway("run", experiment, "--results", tmp_path / "results")
    assert done.returncode == 1
    wanted = f"the kernel {tree} is not built: `twoway build --kernel {tree}` does it"
    assert wanted in done.stderr
    assert not (tmp_path / "results").exists()


def test_a_file_names_no_kernel_by_a_relative_path(tmp_path: Path) -> None:
    """An experiment must name a kernel's folder by its whole path, because the file may move."""
    experiment = write_experiment(tmp_path, {**SMALL, "kernel": "linux"})
    done = twoway("vet", experiment)
    assert done.returncode == 2
    assert "kernel: " in done.stderr
    assert "got 'linux'" in done.stderr


@pytest.mark.slow
def test_a_bisection_needs_a_repository_and_the_kernel_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bisection refuses a folder that is no repository, and an experiment with its own kernel."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ends = ("--source", tmp_path, "--good", "a", "--bad", "b")
    experiment = write_experiment(tmp_path, SMALL)
    done = twoway("bisect", experiment, *ends)
    assert done.returncode == 2
    assert "not a git repository" in done.stderr
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    done = twoway("bisect", experiment, *ends, "--results", tmp_path / "results")
    assert (done.returncode, f"a: no commit of {tmp_path}" in done.stderr) == (2, True)
    experiment = write_experiment(tmp_path, {**SMALL, "kernel": "newest"})
    done = twoway("bisect", experiment, *ends)
    assert done.returncode == 2
    assert "kernel: each commit's kernel is tried, got newest" in done.stderr

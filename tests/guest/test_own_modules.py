"""A user's congestion controls, and all of the kernel's, carry data in the guest."""

import os
import re
import subprocess
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from support.plans import run_folder
from support.running import ROOT, SMALL, measure, processes_with, write_experiment
from support.running import twoway as fresh_twoway
from support.warm_command import twoway

from twoway.backends import own_modules as building
from twoway.backends import uml
from twoway.backends.native import Native
from twoway.backends.own_modules import own_modules
from twoway.contract.plan import LoadModule
from twoway.description.congestion import KERNELS_OWN
from twoway.errors import RunError, UsageError
from twoway.guest.cache import Guest, built_guest
from twoway.paths import EXPERIMENTS
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point
from twoway.runs.run import run_experiment

pytestmark = pytest.mark.usefixtures("guest")

GUIDE = (ROOT / "docs/guides/own-control.md").read_text("utf-8")
TOY = (EXPERIMENTS / "beyond/modules/tcp_aimd.c").read_text("utf-8")


def _listing(language: str) -> str:
    return str(re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)[0])


def _toy(folder: Path, source: str) -> Path:
    """Write an experiment with one flow of a module's control."""
    (folder / "tcp_aimd.c").write_text(source, "utf-8")
    flow = {"name": "left", "from": "h1", "to": "h2", "congestion": "aimd"}
    document = {**SMALL, "flows": [flow], "own_modules": ["tcp_aimd.c"]}
    return write_experiment(folder, document)


def test_the_guide_works_as_written(tmp_path: Path) -> None:
    """The guide's two files, alone in a folder, run as its two points."""
    assert _listing("c") == TOY
    (tmp_path / "tcp_aimd.c").write_text(_listing("c"), "utf-8")
    path = tmp_path / "aimd.yml"
    path.write_text(_listing("yaml"), "utf-8")
    assert twoway("vet", path).returncode == 0
    busy = [
        measure(Path(f"{path}@keep={keep},buffer=5"), tmp_path / f"results-{keep}")["metrics"]
        for keep in (50, 80)
    ]
    assert [round(each["utilisation.forward"]["value"], 2) for each in busy] == [0.87, 0.99]


def test_what_does_not_compile_is_an_error_of_the_file(tmp_path: Path) -> None:
    """Compiler errors with the file's own lines end the command with exit code 2."""
    path = _toy(tmp_path, TOY.replace("* keep_percent", "* kepp_percent"))
    done = twoway("run", path, "--results", tmp_path / "results")
    assert done.returncode == 2
    assert done.stderr == _listing("text")
    assert not list((tmp_path / "results/small").iterdir())


def test_a_control_that_sends_next_to_nothing_is_warned_of(tmp_path: Path) -> None:
    """A control with a window of 0 gives a one-line warning, though every check holds."""
    grows = "\tif (acked)\n\t\ttcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked);\n"
    assert grows in TOY
    path = _toy(tmp_path, TOY.replace(grows, "\ttp->snd_cwnd = 0;\n"))
    done = twoway("run", path, "--results", tmp_path / "results")
    assert done.returncode == 0
    what = "left: mean segments in flight of unlimited data, on a link that is mostly idle"
    assert re.search(rf"^warning {what}: 0\.\d+, bound at least 1$", done.stderr, re.MULTILINE)
    assert done.stderr.count(what) == 1
    assert "\n1 fidelity check: warning\n" in done.stderr


@pytest.mark.long
def test_a_cache_that_has_moved(tmp_path: Path) -> None:
    """Modules can be built for a kernel whose folder has moved since its build."""
    guest = built_guest()
    assert guest.kernel.parent.name == "build"
    moved = tmp_path / "moved"
    subprocess.run(["cp", "-a", guest.kernel.parents[1], moved], check=True)
    elsewhere = replace(guest, kernel=moved / "build" / guest.kernel.name, key=str(tmp_path))
    plan = build_plan(load_point(str(_toy(tmp_path, TOY))), in_kernel=True)
    steps = [step for step in plan.setup if isinstance(step, LoadModule) and step.sources]
    (built,) = own_modules(elsewhere, steps).values()
    assert [path.name for path in built.iterdir()] == ["tcp_aimd.ko"]


def _stumble(folder: Path, statement: str) -> RunError:
    """Run a control that executes a statement when an ACK lets its window grow."""
    start = "\tif (!tcp_is_cwnd_limited(sk))"
    path = _toy(folder, TOY.replace(start, f"\t{statement}\n{start}"))
    plan = build_plan(load_point(str(path)))
    with pytest.raises(RunError) as caught:
        uml.run(built_guest(), run_folder(folder / "run", plan), lambda _: None, stall_s=3)
    return caught.value


def test_an_oops_names_its_function(tmp_path: Path) -> None:
    """A fault in a module is reported with its function and module."""
    error = _stumble(tmp_path, "*(volatile int *)0 = 1;")
    where = r"aimd_cong_avoid\+0x\w+/0x\w+ \[tcp_aimd\]"
    assert re.match(rf"the guest kernel panicked in {where}: Kernel panic", str(error))


def test_a_loop_without_end_names_its_function(tmp_path: Path) -> None:
    """A module that never returns is reported with the function that loops."""
    error = _stumble(tmp_path, "for (;;)\n\t\tbarrier();")
    where = r"aimd_cong_avoid\+0x\w+/0x\w+ \[tcp_aimd\]"
    said = f"for 3 s of wall time; running in the guest: .*; its kernel is in {where}"
    assert re.search(said, str(error))
    assert error.hint == "look for an endless loop in that module"


def _with_kbuild(folder: Path, command: str) -> Path:
    """Write an experiment with a module whose Kbuild runs a command."""
    (folder / "mine").mkdir()
    (folder / "mine/aimd.c").write_text(TOY, "utf-8")
    (folder / "mine/Kbuild").write_text(
        f"obj-m := tcp_mine.o\nreached := $(shell {command})\n$(error over)\n", "utf-8"
    )
    path = _toy(folder, TOY)
    path.write_text(path.read_text().replace("tcp_aimd.c", "mine"), "utf-8")
    return path


def test_a_build_leaves_no_process(tmp_path: Path) -> None:
    """A detached process that a build starts ends with the build."""
    mark = f"outlast-{uuid.uuid4()}"
    staying = "python3 -c 'import time; time.sleep(100)'"
    path = _with_kbuild(tmp_path, f"setsid {staying} {mark} < /dev/null > /dev/null 2>&1 &")
    done = twoway("run", path, "--results", tmp_path / "results")
    assert done.returncode == 2
    assert "tcp_mine does not build" in done.stderr
    assert processes_with(mark) == []


def test_a_build_prints_no_more_than_a_limit(tmp_path: Path) -> None:
    """A build that prints without end is ended with a sentence, and its output is not kept."""
    done = twoway("run", _with_kbuild(tmp_path, "yes >&2"), "--results", tmp_path / "results")
    assert done.returncode == 2
    assert "own_modules: tcp_mine: its build prints more than 64 MiB" in done.stderr


def test_a_build_has_a_time_to_end(
    tmp_path: Path, guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build that does not end is stopped with all of its processes."""
    monkeypatch.setattr(building, "LONGEST_S", 1)
    mark = f"outlast-{uuid.uuid4()}"
    path = _with_kbuild(tmp_path, f"python3 -c 'import time; time.sleep(100)' {mark}")
    steps = build_plan(load_point(str(path))).own_modules
    with pytest.raises(UsageError, match="tcp_mine: its build has not ended after 1 s"):
        own_modules(guest, steps)
    assert processes_with(mark) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system takes root")
def test_a_build_does_not_fill_the_disk(tmp_path: Path) -> None:
    """A build that writes without end is ended before the disk is full, and its files removed."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "none", disk], check=True)
    try:
        writing = "while :; do head -c 1M /dev/zero >> zeros; sleep 0.01; done"
        path = _with_kbuild(tmp_path, f"cd /mnt/run; {writing}")
        environment = {**os.environ, "TMPDIR": str(disk)}
        done = fresh_twoway("run", path, "--results", tmp_path / "results", env=environment)
        assert done.returncode == 1
        assert f"{disk}: less than 64 MiB left on the disk" in done.stderr
        assert [*disk.iterdir()] == []
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_kbuild_writes_nothing_of_the_hosts(tmp_path: Path) -> None:
    """A Kbuild's commands reach only its own folder, and no network."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "aimd.c").write_text(TOY, "utf-8")
    outside = tmp_path / "outside"
    commands = (
        f"touch {outside}; touch {Path.home()}/twoway-escaped; grep -o '^ *eth.*:' /proc/net/dev"
    )
    nothing = "$(error $(reached))"
    (folder / "Kbuild").write_text(
        "obj-m := tcp_mine.o\ntcp_mine-y := aimd.o\n"
        f"reached := $(shell {commands})\n$(if $(reached),{nothing})\n",
        "utf-8",
    )
    path = _toy(tmp_path, TOY)
    path.write_text(path.read_text().replace("tcp_aimd.c", "mine"), "utf-8")
    run_experiment(load_point(str(path)), uml.Uml(built_guest()), tmp_path / "results")
    assert not outside.exists()
    assert not (Path.home() / "twoway-escaped").exists()


def test_other_backends_build_none(tmp_path: Path) -> None:
    """A backend that cannot build an experiment's module refuses it before it changes anything."""
    plan = build_plan(load_point(str(_toy(tmp_path, TOY))))
    folder = run_folder(tmp_path / "run", plan)
    with pytest.raises(
        UsageError, match="tcp_aimd: not possible with the backend native; uml has it"
    ):
        Native(tmp_path).run(folder, lambda _: None)


@pytest.mark.slow
def test_every_control_of_the_kernel_carries_data(tmp_path: Path) -> None:
    """A flow of each of the kernel's own controls delivers data beside the others."""
    flows = [{"name": name, "from": "h1", "to": "h2", "congestion": name} for name in KERNELS_OWN]
    path = write_experiment(tmp_path, {**SMALL, "flows": flows})
    metrics = measure(path, tmp_path / "results")["metrics"]
    assert all(metrics[f"goodput.{name}"]["value"] > 0 for name in KERNELS_OWN)

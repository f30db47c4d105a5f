"""The playbooks on a machine with its own kernel, systemd and disk (LAYER=lab)."""

import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.lab import lab_vm
from support.lab.lab_vm import Machine, wait_for
from support.lab.playing import Played, play
from support.running import ROOT, SLOW, SMALL, twoway, write_experiment

from twoway.backends import qemu
from twoway.contract.verdicts import BAD, VERDICTS, Verdicts
from twoway.description.point import point_names
from twoway.guest.stock_kernel import build_stock
from twoway.messages import say
from twoway.progress import Steps

SCHEDULER = 8786
TRIAL = "kalampoukas-3.2"  # the playbooks' twoway_trial
# On a link this slow a machine adds little to a packet, unless its host is busy and emulates it.
WITNESSED: dict[str, Any] = {
    **SLOW,
    "theory": "zhang",
    "predictions": [
        {
            "metric": ["queue_peak.forward", "queue_peak.reverse"],
            "value": "theory",
            "tolerance": 1,
            "why": "the packet model, as zhang-fig8; a packet of quantisation",
        }
    ],
}

pytestmark = [
    pytest.mark.lab,
    pytest.mark.usefixtures("guest"),
    pytest.mark.skipif(os.geteuid() != 0, reason="making the machine's disk takes root"),
]


@dataclass(frozen=True)
class Deployed:
    """A machine after a deploy.

    Attributes:
        vm: the machine.
        inventory: an inventory with it as a witness, scheduler and worker.
        results: the folder for its runs.
        before: its state before.
        checked: the deploy in check mode, and the machine's state after it.
        played: the deploy.
    """

    vm: Machine
    inventory: Path
    results: Path
    before: set[str]
    checked: tuple[Played, set[str]]
    played: Played


def _played(playbook: str, inventory: Path, *options: str) -> Played:
    say(f"{playbook}.yml ...")
    played = play(playbook, inventory, *options)
    say(f"{playbook}.yml took {played.took_s:.0f} s")
    return played


@pytest.fixture(scope="module")
def deployed() -> Iterator[Deployed]:
    """Boot a bare Debian, and run deploy.yml for `uml` and `native` on it."""
    with Steps() as steps:
        stock = build_stock(steps)
    say("a machine's disk ...")
    image = lab_vm.make_image()
    accelerator = "kvm" if qemu.best_accelerator(stock) == "kvm" else "tcg"
    with tempfile.TemporaryDirectory(prefix="vm") as scratch:
        folder = Path(scratch)
        say(f"a machine boots ({accelerator}) ...")
        began = time.monotonic()
        with lab_vm.machine(folder, image, accelerator, [SCHEDULER]) as vm:
            say(f"SSH after {time.monotonic() - began:.0f} s")
            inventory = vm.inventory(
                twoway_backends=["uml", "native"],
                twoway_results=str(folder / "results"),
                twoway_certificates=str(folder / "certificates"),
            )
            before = vm.state()
            checked = _played("deploy", inventory, "--check"), vm.state()
            played = _played("deploy", inventory)
            yield Deployed(vm, inventory, folder / "results", before, checked, played)


def test_check_mode_changes_nothing(deployed: Deployed) -> None:
    """--check on a bare Debian reports changes, and makes none."""
    played, after = deployed.checked
    assert played.status == 0, played.said
    assert played.recap("vm")["changed"] > 0
    assert after == deployed.before


def test_bare_debian_is_deployed_and_runs(deployed: Deployed) -> None:
    """On a bare Debian packages install, DKMS builds, modules load, and a trial runs."""
    assert deployed.played.status == 0, deployed.played.said
    vm = deployed.vm
    release = vm.run("uname", "-r").strip()
    assert f"{release}, x86_64: installed" in vm.run("dkms", "status", "twoway")
    assert vm.run("modinfo", "-F", "sig_id", "tcp_fixed") == "PKCS#7\n"
    measured = vm.run("sh", "-c", "'ls /var/lib/twoway/results/*/2*/metrics.json'").split()
    assert [Path(path).parts[-3] for path in measured] == sorted(point_names(TRIAL))
    for path in measured:
        assert json.loads(vm.run("cat", path))["clock_source"] == "virtual"


def test_redeploy_changes_nothing(deployed: Deployed) -> None:
    """A second deploy changes nothing, by Ansible's report and by a comparison of the machine."""
    before = deployed.vm.state()
    again = _played("deploy", deployed.inventory)
    assert again.status == 0, again.said
    assert again.recap("vm")["changed"] == 0, again.said
    assert deployed.vm.state() == before


def test_native_runs_the_modules_of_dkms(deployed: Deployed) -> None:
    """The machine's own kernel runs an experiment with DKMS's module, and the run is gathered.

    Its statements hold, unless the clock of an emulated machine leaves the verdict open.
    """
    vm, experiment = deployed.vm, "/var/lib/twoway/witnessed.yml"
    before = vm.state()
    vm.run("tee", experiment, text=yaml.safe_dump(WITNESSED))
    options = json.dumps({"twoway_experiments": [experiment], "twoway_backend": "native"})
    ran = _played("run", deployed.inventory, "-e", options)
    runs = [*deployed.results.glob("witnessed/2*")]
    assert len(runs) == 1, ran.said
    (run,) = runs
    judged = Verdicts.read(run / VERDICTS)
    assert ran.status == 0 or judged.tells_little, ran.said
    assert judged.exit_code != BAD, judged.misses
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["backend"] == "native"
    assert manifest["kernel"]["release"] == vm.run("uname", "-r").strip()
    installed = vm.run("modinfo", "-n", "tcp_fixed").strip()
    digest = vm.run("sha256sum", installed).split()[0]
    assert manifest["modules"]["tcp_fixed.ko"]["sha256"] == digest
    new = {line for line in vm.state() - before if " /var/lib/twoway/" not in line}
    assert new == set()


def test_workers_are_services(deployed: Deployed, tmp_path: Path) -> None:
    """Points reach the machine's workers over TLS; systemd restarts a killed worker."""
    vm = deployed.vm
    served = _played("workers", deployed.inventory)
    assert served.status == 0, served.said
    listening = vm.run("ss", "-Hltnp").splitlines()
    others = {line.split()[3].rpartition(":")[0] for line in listening if "sshd" not in line}
    assert others == {"10.0.2.15", "127.0.0.1"}  # in the lab, QEMU's address is the machine's
    _sweep(deployed, write_experiment(tmp_path, SMALL), tmp_path / "first")
    show = ["systemctl", "show", "-P", "MainPID", "twoway-worker"]
    old = vm.run(*show)
    vm.run("systemctl", "kill", "--signal=KILL", "twoway-worker")
    wait_for(lambda: vm.run(*show) not in {old, "0\n"}, 300)
    _sweep(deployed, write_experiment(tmp_path, SMALL), tmp_path / "second")
    again = _played("workers", deployed.inventory)
    assert again.recap("vm")["changed"] == 0, again.said


def _sweep(deployed: Deployed, experiment: Path, results: Path) -> None:
    say("a point for the worker ...")
    scheduler = f"tls://127.0.0.1:{deployed.vm.ports[SCHEDULER]}"
    certificates = deployed.results.with_name("certificates")
    to = ["--scheduler", scheduler, "--certificates", str(certificates)]
    done = twoway("sweep", experiment, "--results", results, *to, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert len([*results.glob("small/2*/manifest.json")]) == 1


def test_teardown_leaves_nothing(deployed: Deployed) -> None:
    """After teardown packages, units, users, modules, sysctls and files are as before."""
    played = _played("teardown", deployed.inventory)
    assert played.status == 0, played.said
    after = deployed.vm.state()
    assert after - deployed.before == set()
    assert deployed.before - after == set()
    assert [*deployed.results.glob(f"{TRIAL}@*/2*/manifest.json")]

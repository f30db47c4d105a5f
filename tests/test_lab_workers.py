"""Points on Dask's workers, over TLS: none lost, none twice, and the bytes of a local run."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, SMALL, twoway, write_experiment
from distributed import Client
from jinja2 import Environment, StrictUndefined

from twoway.case import load_case
from twoway.lab import _security, run_here

WORKERS = ROOT / "playbooks/roles/workers"
POINTS = 40
SWEPT: dict[str, Any] = {
    **SMALL,
    "duration_s": 0.2,
    "warm_up_s": 0.1,
    "matrix": {"window": {"set": ["flows.left.window_packets"], "to": list(range(2, POINTS + 2))}},
}


@dataclass
class Crew:
    """A scheduler and three workers, as processes of this machine.

    Attributes:
        address: the scheduler's.
        certificates: folder with the client's.
        workers: their processes.
        logs: folder with what each says.
    """

    address: str
    certificates: Path
    workers: list[subprocess.Popen[bytes]]
    logs: Path

    def sweep(self, path: Path, results: Path) -> list[str]:
        """The arguments of `twoway` that put a sweep to this crew."""
        to = ["--scheduler", self.address, "--certificates", str(self.certificates)]
        return ["sweep", str(path), "--results", str(results), *to]


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    """Three workers with a certificate each, as their role would start them."""
    folder = tmp_path / "crew"
    names = ["client", "scheduler", *(f"lab{number}" for number in (1, 2, 3))]
    subprocess.run(
        [WORKERS / "files/make-certificates", folder, *names], check=True, capture_output=True
    )
    started: list[subprocess.Popen[bytes]] = []
    listening = ["--host", "tls://127.0.0.1", "--port", "0", "--no-dashboard"]
    file = folder / "scheduler.json"
    started.append(_dask(folder, "scheduler", *listening, "--scheduler-file", str(file)))
    try:
        _wait(file.is_file)
        address = json.loads(file.read_text())["address"]
        for name in names[2:]:
            process = _dask(
                folder,
                name,
                *("--nthreads", "1", "--no-dashboard", "--no-nanny", "--name", name),
                *("--host", "tls://127.0.0.1", "--local-directory", str(folder / f"{name}-own")),
                address,
                program="worker",
            )
            started.append(process)
        for name in names[2:]:
            _wait(partial(_says, folder / f"{name}.log", b"Registered to"))
        yield Crew(address, folder, started[1:], folder)
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def _dask(folder: Path, name: str, *options: str, program: str = "") -> subprocess.Popen[bytes]:
    certificate = ["--tls-ca-file", "ca.crt", "--tls-cert", f"{name}.crt", "--tls-key"]
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", f"distributed.cli.dask_{program or name}"),
                *(*certificate, f"{name}.key", *options),
            ],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _says(log: Path, words: bytes) -> bool:
    return words in log.read_bytes()


def _wait(there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not there():
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)


def _bytes(results: Path) -> dict[str, list[tuple[str, bytes]]]:
    """What each point's runs hold, but for when and how fast they ran."""
    found: dict[str, list[tuple[str, bytes]]] = {}
    for manifest in sorted(results.glob("small@*/[0-9]*/manifest.json")):
        run = manifest.parent
        said = json.loads(manifest.read_text())
        for changing in ("run", "timing"):
            del said[changing]
        metrics = json.loads((run / "metrics.json").read_text())
        del metrics["run"]
        files = [*run.glob("pcap/*"), *run.glob("sockets/tcp-info.csv"), run / "plan.json"]
        found.setdefault(run.parent.name, []).extend(
            [
                ("manifest", json.dumps(said).encode()),
                ("metrics", json.dumps(metrics).encode()),
                *((path.name, path.read_bytes()) for path in sorted(files)),
            ]
        )
    return found


def test_a_worker_that_dies_loses_nothing(crew: Crew, tmp_path: Path) -> None:
    """Of 40 points on three workers, one killed midway, all are there once, as local runs are."""
    path = write_experiment(tmp_path, SWEPT)
    there, here = tmp_path / "there", tmp_path / "here"
    sweep = subprocess.Popen(
        [sys.executable, "-m", "twoway.cli", *crew.sweep(path, there)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
    )
    _wait(lambda: len(list(there.glob("small@*/[0-9]*"))) >= POINTS // 4)
    victim = crew.workers[1]
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    finished_by_then = len(list(there.glob("small@*/[0-9]*")))
    said = sweep.communicate()[1].decode()
    assert sweep.returncode == 0, said
    assert finished_by_then < POINTS
    runs = [folder.name for folder in there.glob("small@*/[0-9]*")]
    assert len(runs) == len(set(runs)) == POINTS
    compared = [f"{path}@window={window}" for window in range(2, POINTS + 2, 5)]
    assert twoway("sweep", *compared, "--results", here).returncode == 0
    local = _bytes(here)
    assert len(local) == len(compared)
    assert {point: _bytes(there)[point] for point in local} == local


def test_another_deployment_is_refused(crew: Crew, tmp_path: Path) -> None:
    """A worker that would run something else does not: the sentence names it, and what to do."""
    case = load_case(str(write_experiment(tmp_path, SMALL)))
    security = _security(crew.address, crew.certificates)
    with Client(crew.address, security=security) as client:
        sent = client.submit(run_here, case, "uml", "another identity").result()
    assert sent.parcel == b""
    assert re.fullmatch(r"worker lab\d would run something else: .*; deploy again", sent.error)


def test_without_a_certificate(crew: Crew, tmp_path: Path) -> None:
    """Without its certificate, or with another lab's, a client is turned away with a sentence."""
    path = write_experiment(tmp_path, SMALL)
    arguments = crew.sweep(path, tmp_path / "results")[:-1]
    none = twoway(*arguments, tmp_path)
    assert none.returncode == 2
    assert f"{tmp_path}/ca.crt: not there" in none.stderr
    other = tmp_path / "other"
    subprocess.run(
        [WORKERS / "files/make-certificates", other, "client"], check=True, capture_output=True
    )
    turned_away = twoway(*arguments, other)
    assert turned_away.returncode == 2
    assert f"--scheduler {crew.address}: " in turned_away.stderr


@pytest.mark.parametrize("service", ["scheduler", "worker"])
def test_services_are_sound(service: str, tmp_path: Path) -> None:
    """What the role writes are services that systemd finds nothing wrong with."""
    program = tmp_path / "environment/bin/dask"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    template = (WORKERS / f"templates/{service}.service.j2").read_text()
    rendered = Environment(autoescape=False, undefined=StrictUndefined).from_string(template)  # noqa: S701 - no page
    unit = tmp_path / f"twoway-{service}.service"
    unit.write_text(
        rendered.render(
            twoway_home=str(tmp_path),
            twoway_data=str(tmp_path),
            twoway_user="root",
            twoway_port=8786,
            twoway_lab_address="192.0.2.11",
            inventory_hostname="lab1",
            groups={"scheduler": ["lab1"]},
            hostvars={"lab1": {"twoway_lab_address": "192.0.2.11"}},
            ansible_facts={"processor_vcpus": 4},
        )
    )
    verify = ["systemd-analyze", "verify", "--man=no", str(unit)]
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert str(unit.name) not in done.stderr
    assert done.returncode == 0

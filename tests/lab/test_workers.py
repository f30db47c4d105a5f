"""Points on Dask's workers over TLS: each runs once, with the bytes of a local run."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from distributed import Client, LocalCluster
from support.lab.lab_crew import PRELOAD, WORKERS, Crew, started_crew, wait
from support.lab.playing import play
from support.running import ROOT, SMALL, twoway, write_experiment

from twoway.backends.registry import find_backend
from twoway.errors import UsageError
from twoway.measure.revision import code_revision
from twoway.runs.manifest import tool_versions
from twoway.runs.points import load_point
from twoway.sweeps import scheduler
from twoway.sweeps.scheduler import _security, run_here

pytestmark = pytest.mark.usefixtures("guest")

WINDOWS = range(2, 42)


# A worker answers points of this title with something that is no run.
ODD = "An odd answer"
ANSWERS = f"""
from twoway.sweeps import scheduler
if not hasattr(scheduler, "own"):  # Dask loads a file twice
    scheduler.own = scheduler.run_here
    scheduler.run_here = lambda point, *rest: (
        7 if point.experiment.title == {ODD!r} else scheduler.own(point, *rest)
    )
"""


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """Start a worker, with a certificate as the scheduler has."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "answers.py").write_text(ANSWERS)
    with started_crew(folder / "crew", (str(folder / "answers.py"),)) as there:
        yield there


def swept(folder: Path, windows: Sequence[int]) -> Path:
    """Make a file with a sweep of short points."""
    to = {"set": ["flows.left.window_packets"], "to": list(windows)}
    document = {**SMALL, "duration_s": 0.2, "warm_up_s": 0.1, "matrix": {"window": to}}
    return write_experiment(folder, document)


def each_once(windows: Sequence[int]) -> list[str]:
    """Return the names of a sweep's points."""
    return sorted(f"small@window={window}" for window in windows)


def _bytes(results: Path) -> dict[str, list[tuple[str, bytes]]]:
    """Return the content of each point's runs, without their times and speeds."""
    found: dict[str, list[tuple[str, bytes]]] = {}
    for manifest in sorted(results.glob("small@*/[0-9]*/manifest.json")):
        run = manifest.parent
        said = json.loads(manifest.read_text())
        for changing in ("run", "timing", "digests"):  # a console has addresses, which differ
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


def _ran(results: Path) -> list[str]:
    """Return the point of each finished run."""
    return sorted(path.parts[-3] for path in results.glob("small@*/[0-9]*/manifest.json"))


def _end(process: subprocess.Popen[bytes], results: Path, when: int) -> None:
    """Kill a process when this number of points has run, and others are left."""
    wait(lambda: len(_ran(results)) >= when)
    process.kill()
    process.wait()
    assert len(_ran(results)) < len(WINDOWS)


@pytest.mark.long
def test_workers_and_a_scheduler_that_die_lose_nothing(tmp_path: Path) -> None:
    """40 points on three workers each run once, and the compared ones equal local runs.

    One worker is killed after a quarter; after half the scheduler stops, is asked whether workers
    are left, and is killed before it answers. The workers end with it. All start again after more
    time than a first connection may take.
    """
    path = swept(tmp_path, WINDOWS)
    there, here = tmp_path / "there", tmp_path / "here"
    with started_crew(tmp_path / "crew") as crew:
        sweep = subprocess.Popen(
            [sys.executable, "-m", "twoway.cli", *crew.sweep(path, there)],
            cwd=ROOT,
            stderr=subprocess.PIPE,
        )
        _end(crew.workers[1], there, len(WINDOWS) // 4)
        wait(lambda: len(_ran(there)) >= len(WINDOWS) // 2)
        crew.scheduler.send_signal(signal.SIGSTOP)
        time.sleep(scheduler._CHECK_S + 2)
        _end(crew.scheduler, there, len(WINDOWS) // 2)
        time.sleep(scheduler._CHECK_S + 2)
        crew.begin_again()
        said = sweep.communicate()[1].decode()
    assert sweep.returncode == 0, said
    assert _ran(there) == each_once(WINDOWS)
    compared = [f"{path}@window={window}" for window in WINDOWS[::5]]
    assert twoway("sweep", *compared, "--results", here).returncode == 0
    local = _bytes(here)
    assert len(local) == len(compared)
    assert {point: _bytes(there)[point] for point in local} == local


def test_another_deployment_is_refused(crew: Crew, tmp_path: Path) -> None:
    """A worker whose deployment differs refuses points, and lists each difference in full."""
    point = load_point(str(write_experiment(tmp_path, SMALL)))
    security = _security(crew.address, crew.certificates)
    with Client(crew.address, security=security) as client:
        wanted = {**scheduler.wanted_there(point, find_backend("uml")), "tools.tc": "tc 9"}
        sent = client.submit(run_here, point, "uml", wanted).result()
    assert sent.archive == b""
    own = tool_versions()["tc"]
    refusal = rf"worker lab\d would run something else: tools.tc {own}, not tc 9; deploy again"
    assert re.fullmatch(refusal, sent.error)


def test_older_code_is_refused(crew: Crew, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that loaded its code before the client's changed refuses points."""
    point, backend = load_point(str(write_experiment(tmp_path, SMALL))), find_backend("uml")
    with Client(crew.address, security=_security(crew.address, crew.certificates)) as client:
        monkeypatch.setitem(scheduler._CODE, "code.twoway", "of another day")
        sent = client.submit(
            run_here, point, "uml", scheduler.wanted_there(point, backend)
        ).result()
    own = code_revision(ROOT / "twoway")
    assert f"would run something else: code.twoway {own}, not of another day;" in sent.error


def test_others_take_what_one_refuses(crew: Crew, tmp_path: Path) -> None:
    """An outdated worker is named once, and the other workers run all points."""
    stale = tmp_path / "stale.py"
    stale.write_text("from twoway.sweeps import scheduler\nscheduler._CODE['code.guest'] = 'old'\n")
    windows = WINDOWS[:4]
    path = swept(tmp_path, windows)
    with crew.joined("outdated", str(stale)):
        done = twoway(*crew.sweep(path, tmp_path / "results"))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("worker outdated would run something else") == 1
    assert _ran(tmp_path / "results") == each_once(windows)


def test_nothing_listens_elsewhere(crew: Crew) -> None:
    """With the services' options scheduler and workers listen only at the given addresses."""
    sockets = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout
    for process in (crew.scheduler, *crew.workers):
        of_it = [line.split() for line in sockets.splitlines() if f"pid={process.pid}," in line]
        assert len(of_it) == 2  # Dask's own port, and HTTP
        assert {at.rpartition(":")[0] for _, _, _, at, *_ in of_it} == {"127.0.0.1"}


def test_without_a_certificate(crew: Crew, tmp_path: Path) -> None:
    """A client without its certificate, or with another lab's, is refused with a sentence."""
    refused = pytest.raises(UsageError, match=f"{tmp_path}/ca.crt: not there")
    with refused, scheduler.lab_workers(crew.address, tmp_path):
        pass
    arguments = crew.sweep(write_experiment(tmp_path, SMALL), tmp_path / "results")[:-1]
    other = tmp_path / "other"
    subprocess.run([WORKERS / "files/make-certificates", other], check=True, capture_output=True)
    turned_away = twoway(*arguments, other)
    assert turned_away.returncode == 2
    assert f"--scheduler {crew.address}: " in turned_away.stderr


def test_a_certificate_names_its_host(crew: Crew, tmp_path: Path) -> None:
    """A scheduler whose name is not in its certificate is refused.

    The certificates of the crew are for 127.0.0.1.
    """
    elsewhere = crew.address.replace("127.0.0.1", "localhost")
    refused = pytest.raises(UsageError, match=f"{elsewhere}: TLS certificate does not match")
    with refused, scheduler.lab_workers(elsewhere, crew.certificates):
        pass
    for name, good in (("lab1", True), ("client", False)):
        verify = ["openssl", "verify", "-CAfile", "ca.crt", "-purpose", "sslserver", f"{name}.crt"]
        done = subprocess.run(verify, cwd=crew.certificates, capture_output=True, check=False)
        assert (done.returncode == 0) == good
    made = [str(WORKERS / "files/make-certificates"), str(tmp_path)]
    for host, new in (("::1", ["ca", "client", "lab1"]), ("::1", []), ("lab1,::1", ["lab1"])):
        done = subprocess.run([*made, f"lab1={host}"], capture_output=True, check=True)
        assert done.stdout.decode().split() == new


def test_without_tls(crew: Crew) -> None:
    """A remote scheduler without TLS is refused; if a local one has TLS, a hint says so."""
    for address in ("tcp://192.0.2.11:8786", "lab1:8786", "ws://lab1:8786", "tcp://[fd00::1]:1"):
        refused = pytest.raises(UsageError, match=f"{re.escape(address)}: without TLS, anybody")
        with refused, scheduler.lab_workers(address, crew.certificates):
            pass
    address = crew.address.replace("tls://", "tcp://")
    with (
        pytest.raises(UsageError, match=f"--scheduler {address}: ") as asked,
        scheduler.lab_workers(address, crew.certificates),
    ):
        pass
    assert asked.value.hint == "does it speak TLS? then its address is tls://..."


def test_a_lab_of_ipv6(tmp_path: Path) -> None:
    """A scheduler and a worker at an IPv6 address run a point as at an IPv4 address."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6")
    path = write_experiment(tmp_path, SMALL)
    with started_crew(tmp_path / "crew", (PRELOAD,), "::1") as crew:
        assert crew.address.startswith("tls://[::1]:")
        done = twoway(*crew.sweep(path, tmp_path / "results"))
    assert done.returncode == 0, done.stderr


def test_an_answer_that_is_no_run(crew: Crew, tmp_path: Path) -> None:
    """If a worker answers with something that is no run, the point fails with a sentence."""
    path = write_experiment(tmp_path, {**SMALL, "title": ODD})
    done = twoway(*crew.sweep(path, tmp_path / "results"))
    assert done.returncode == 1
    assert "a worker's answer is no run: 7" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no worker joins in time, the error names the scheduler."""
    monkeypatch.setattr(scheduler, "_PATIENCE_S", 5)
    with LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None) as alone:
        address = alone.scheduler_address
        refused = pytest.raises(UsageError, match=f"--scheduler {address}: has no workers")
        with refused, scheduler.lab_workers(address, tmp_path):
            pass


@pytest.mark.long
def test_services_are_sound(tmp_path: Path) -> None:
    """The services that the role writes are valid for systemd.

    Ansible writes them for two hosts; the scheduler has an IPv6 address.
    """
    if os.geteuid() != 0 and not Path("/run/systemd").is_dir():
        pytest.skip("systemd-analyze wants /run/systemd, which systemd or root makes")
    program = tmp_path / "environment/bin/dask"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    everyone = {
        "hosts": {
            "scheduler": {"twoway_lab_address": "fd00::1"},
            "worker": {"twoway_lab_address": "192.0.2.12"},
        },
        "vars": {
            "ansible_connection": "local",
            "ansible_become": False,
            "twoway_home": str(tmp_path),
            "twoway_data": str(tmp_path),
            "twoway_user": "root",
        },
    }
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(json.dumps({"all": everyone, "scheduler": {"hosts": {"scheduler": None}}}))
    played = play(str(_filling_in(tmp_path).with_suffix("")), inventory)
    assert played.status == 0, played.said
    for service in ("scheduler", "worker"):
        unit = tmp_path / f"twoway-{service}.service"
        verify = ["systemd-analyze", "verify", "--man=no", str(unit)]
        done = subprocess.run(verify, capture_output=True, text=True, check=False)
        assert unit.name not in done.stderr
        assert done.returncode == 0
    scheduler, worker = (
        (tmp_path / f"twoway-{service}.service").read_text() for service in ("scheduler", "worker")
    )
    assert "--host tls://[fd00::1] --port 8786 " in scheduler
    assert "--dashboard-address 127.0.0.1:0 " in scheduler
    assert "--dashboard-address 127.0.0.1:0 " in worker
    assert " tls://[fd00::1]:8786 " in worker
    assert "--host tls://192.0.2.12 " in worker


def _filling_in(folder: Path) -> Path:
    """Write a playbook that writes each host's service into a folder, and installs nothing."""
    template = {
        "src": str(WORKERS / "templates/{{ inventory_hostname }}.service.j2"),
        "dest": f"{folder}/twoway-{{{{ inventory_hostname }}}}.service",
        "mode": "0644",
    }
    document = {
        "hosts": "all",
        "roles": [str(WORKERS.with_name("twoway"))],
        "tasks": [{"ansible.builtin.template": template}],
    }
    path = folder / "fill-in.yml"
    path.write_text(json.dumps([document]))
    return path

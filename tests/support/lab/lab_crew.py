"""A scheduler and workers as their Ansible role starts them, but as processes here."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
WORKERS = ROOT / "playbooks/roles/workers"
PRELOAD = "twoway.sweeps.scheduler"
WITHOUT_PAGES = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")


@dataclass
class Crew:
    """A scheduler and its workers.

    Attributes:
        host: the address at which all listen.
        address: the scheduler's.
        certificates: folder with the client's.
        scheduler: its process.
        workers: theirs.
    """

    host: str
    address: str
    certificates: Path
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]

    def sweep(self, path: Path, results: Path) -> list[str]:
        """Return the arguments of `twoway` that run a sweep on this crew."""
        to = ["--scheduler", self.address, "--certificates", str(self.certificates)]
        return ["sweep", str(path), "--results", str(results), *to]

    @contextmanager
    def joined(self, name: str, preload: str) -> Iterator[None]:
        """Start one more worker, which has a certificate, and end it."""
        _certify(self.certificates, self.host, [name])
        worker = _worker(self, name, preload)
        try:
            wait(partial(_says, self.certificates / f"{name}.log", b"Registered to"))
            yield
        finally:
            worker.terminate()
            worker.wait()

    def begin_again(self) -> None:
        """Restart scheduler and workers as systemd does after the scheduler has died."""
        port = self.address.rpartition(":")[2]
        self.scheduler = _scheduler(self.certificates, self.host, port)
        for number, worker in enumerate(self.workers):
            worker.wait()
            self.workers[number] = _worker(self, f"lab{number + 1}", PRELOAD)


@contextmanager
def started_crew(
    folder: Path, preloads: Sequence[str] = (PRELOAD,) * 3, host: str = "127.0.0.1"
) -> Iterator[Crew]:
    """Start a scheduler and workers, each with a certificate, and end them.

    Args:
        folder: to be made, for certificates and logs.
        preloads: modules or files that each worker loads as it starts.
        host: this machine's address at which all listen.
    """
    names = [f"lab{number}" for number in range(1, len(preloads) + 1)]
    _certify(folder, host, ["scheduler", *names])
    file = folder / "scheduler.json"
    crew = Crew(host, "", folder, _scheduler(folder, host, "0", "--scheduler-file", str(file)), [])
    try:
        wait(lambda: file.is_file() and file.read_text().endswith("}"))  # written with a delay
        crew.address = json.loads(file.read_text())["address"]
        for name, preload in zip(names, preloads, strict=True):
            crew.workers.append(_worker(crew, name, preload))
        for name in names:
            wait(partial(_says, folder / f"{name}.log", b"Registered to"))
        yield crew
    finally:
        for process in (*crew.workers, crew.scheduler):
            process.terminate()
            process.wait()


def _certify(folder: Path, host: str, names: Sequence[str]) -> None:
    """Make certificates of machines at an address, by the folder's authority."""
    make = str(WORKERS / "files/make-certificates")
    machines = [f"{name}={host}" for name in names]
    subprocess.run([make, str(folder), *machines], check=True, capture_output=True)


def wait(there: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + 120
    while not there():
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)


def _scheduler(folder: Path, host: str, port: str, *options: str) -> subprocess.Popen[bytes]:
    return _dask(folder, host, "scheduler", "scheduler", "--port", port, *options)


def _worker(crew: Crew, name: str, preload: str) -> subprocess.Popen[bytes]:
    own = str(crew.certificates / f"{name}-own")
    how = ["--nthreads", "1", "--no-nanny", "--local-directory", own, "--preload", preload]
    return _dask(crew.certificates, crew.host, name, "worker", *how, "--name", name, crew.address)


def _dask(
    folder: Path, host: str, name: str, program: str, *options: str
) -> subprocess.Popen[bytes]:
    listening = ["--host", f"tls://[{host}]" if ":" in host else f"tls://{host}"]
    certificate = ["--tls-ca-file", "ca.crt", "--tls-cert", f"{name}.crt", "--tls-key"]
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", f"distributed.cli.dask_{program}"),
                *(*listening, *WITHOUT_PAGES, *certificate, f"{name}.key", *options),
            ],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
                "DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION": "1.0",
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _says(log: Path, words: bytes) -> bool:
    return words in log.read_bytes()

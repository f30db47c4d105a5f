"""A scheduler and workers as their Ansible role starts them, but as processes of this machine."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKERS = ROOT / "playbooks/roles/workers"


@dataclass
class Crew:
    """A scheduler and its workers.

    Attributes:
        address: the scheduler's.
        certificates: folder with the client's.
        workers: their processes.
    """

    address: str
    certificates: Path
    workers: list[subprocess.Popen[bytes]]

    def sweep(self, path: Path, results: Path) -> list[str]:
        """The arguments of `twoway` that put a sweep to this crew."""
        to = ["--scheduler", self.address, "--certificates", str(self.certificates)]
        return ["sweep", str(path), "--results", str(results), *to]


@contextmanager
def started_crew(folder: Path, workers: int = 3) -> Iterator[Crew]:
    """Start a scheduler and so many workers, each with a certificate, and end them.

    Args:
        folder: to be made, for certificates and logs.
        workers: how many.
    """
    names = ["client", "scheduler", *(f"lab{number}" for number in range(1, workers + 1))]
    command: list[str | Path] = [WORKERS / "files/make-certificates", folder, *names]
    subprocess.run(command, check=True, capture_output=True)
    started: list[subprocess.Popen[bytes]] = []
    listening = ["--host", "tls://127.0.0.1", "--port", "0", "--no-dashboard"]
    file = folder / "scheduler.json"
    started.append(_dask(folder, "scheduler", *listening, "--scheduler-file", str(file)))
    try:
        wait(lambda: file.is_file() and file.read_text().endswith("}"))  # it is not written at once
        address = json.loads(file.read_text())["address"]
        for name in names[2:]:
            process = _dask(
                folder,
                name,
                *("--nthreads", "1", "--no-dashboard", "--no-nanny", "--name", name),
                *("--preload", "twoway.lab"),
                *("--host", "tls://127.0.0.1", "--local-directory", str(folder / f"{name}-own")),
                address,
                program="worker",
            )
            started.append(process)
        for name in names[2:]:
            wait(partial(_says, folder / f"{name}.log", b"Registered to"))
        yield Crew(address, folder, started[1:])
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def wait(there: Callable[[], bool]) -> None:
    """Wait until something is there."""
    deadline = time.monotonic() + 120
    while not there():
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)


def _dask(folder: Path, name: str, *options: str, program: str = "") -> subprocess.Popen[bytes]:
    certificate = ["--tls-ca-file", "ca.crt", "--tls-cert", f"{name}.crt", "--tls-key"]
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", f"distributed.cli.dask_{program or name}"),
                *(*certificate, f"{name}.key", *options),
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

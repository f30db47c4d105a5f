"""Programs and instruments of the kernel that run during the traffic."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import contextmanager

from network import GuestError, namespace, note
from plan_clock import report_progress
from run_folder import RUN, make_folder, write_file

TYPE_CHECKING = False  # `typing` takes long to load
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

# The device of our kernel module twoway_testbed.
INSTRUMENT = "/dev/twoway_testbed"
# Time for a daemon to report that it is ready, in virtual time.
READY_S = 5.0


def kernel_log() -> list[str]:
    """Read the kernel's messages, the oldest first."""
    log = subprocess.run(["dmesg", "-t"], capture_output=True, text=True, check=False)
    return log.stdout.splitlines()


def _said_by_testbed() -> str:
    """Read why our module refused its last line; empty if the error's number suffices."""
    prefix = "twoway_testbed"
    said = [line.removeprefix(prefix) for line in kernel_log() if line.startswith(f"{prefix}: ")]
    return said[-1] if said else ""


class Instrument:
    """An instrument of our module twoway_testbed, with a program's methods."""

    def __init__(self, lines: list[dict[str, Any]], summary: Path) -> None:
        """Write the lines; its summary goes to a file at its end."""
        self.summary, self.last = summary, lines[-1]["text"]
        self.device = os.open(INSTRUMENT, os.O_RDWR | os.O_CLOEXEC)
        for line in lines:
            note(line["node"], ("echo", f"'{line['text']}'", ">", INSTRUMENT))
            with namespace(line["node"]):
                try:
                    os.write(self.device, line["text"].encode())
                except OSError as error:
                    why = f"{error.strerror}{_said_by_testbed()}"
                    raise GuestError(f"testbed: {line['text']}: {why}") from error

    def wait(self, timeout: float) -> int:  # noqa: ARG002 - ends when asked, or at its time
        """End the instrument, or wait for its end."""
        if self.device >= 0:
            try:
                write_file(self.summary, os.read(self.device, 4096).decode())
            except OSError as error:
                raise GuestError(f"testbed: {self.last}: {error.strerror}") from error
            finally:
                os.close(self.device)
                self.device = -1
        return 0

    def send_signal(self, _: int) -> None:
        """Do nothing: waiting ends it."""


@contextmanager
def _created(path: Path) -> Iterator[int]:
    """Yield the descriptor of a new file for a program to write, for a `with`."""
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        yield opened
    finally:
        os.close(opened)


@contextmanager
def _lines(lines: list[str]) -> Iterator[int]:
    """Yield the descriptor of a file of lines in memory for a program to read, for a `with`."""
    opened = os.memfd_create("stdin")
    try:
        os.write(opened, "".join(f"{line}\n" for line in lines).encode())
        os.lseek(opened, 0, os.SEEK_SET)
        yield opened
    finally:
        os.close(opened)


class Daemons:
    """Programs that run during the traffic; their standard errors are in log/."""

    def __init__(self) -> None:
        self.running: list[tuple[dict[str, Any], subprocess.Popen[bytes] | Instrument]] = []
        (RUN / "log").mkdir(exist_ok=True)

    def start(self, programs: list[dict[str, Any]]) -> None:
        """Start programs; wait for the `ready` words of those that have some."""
        for program in programs:
            log = RUN / "log" / f"{program['name']}.err"
            out = RUN / (program["stdout"] or f"log/{program['name']}.out")
            for file in (out, *(RUN / report for report in program["reports"])):
                make_folder(file.parent)
            if program["lines"]:
                summary = out if program["stdout"] else log
                self.running.append((program, Instrument(program["lines"], summary)))
                continue
            note(program["node"], program["run"], program["stdin"])
            with (
                namespace(program["node"]),
                _created(log) as err,
                _created(out) as stdout,
                _lines(program["stdin"]) as stdin,
            ):
                process = subprocess.Popen(program["run"], stdin=stdin, stdout=stdout, stderr=err)
            self.running.append((program, process))
        for program in programs:
            if program["ready"]:
                self._wait_ready(program)

    def _wait_ready(self, program: dict[str, Any]) -> None:
        log = RUN / "log" / f"{program['name']}.err"
        deadline = time.monotonic() + READY_S
        while program["ready"] not in log.read_text(errors="replace"):
            if time.monotonic() > deadline:
                raise GuestError(f"{program['name']}: not ready: {log.read_text().strip()}")
            time.sleep(0.001)

    def finish(self) -> None:
        """Wait for every program to end; terminate those that take too long."""
        asked = set()
        # Sinks of datagrams, which do not end by themselves, come last: their ports stay open while
        # packets may come.
        for program, process in sorted(self.running, key=lambda pair: not pair[0]["patience_s"]):
            if not isinstance(process, Instrument):  # ending takes no time
                report_progress()
            try:
                process.wait(timeout=program["patience_s"])
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM)
                asked.add(process)
        # Programs that failed by themselves come first: the failure of a terminated one is only a
        # consequence.
        self.running.sort(key=lambda pair: pair[1] in asked)
        self._collect()

    def interrupt(self) -> None:
        """End every program with SIGINT, as a user would at a terminal."""
        for _, process in self.running:
            process.send_signal(signal.SIGINT)
        self._collect()

    def _collect(self) -> None:
        """Wait until all programs have ended; raise GuestError if one failed."""
        for program, process in self.running:
            name = program["name"]
            try:
                code = process.wait(timeout=READY_S)
            except subprocess.TimeoutExpired:
                raise GuestError(f"{name}: still running at the end") from None
            if code != 0:
                said = (RUN / "log" / f"{name}.err").read_text(errors="replace").strip()
                raise GuestError(f"{name}: exit status {code}: {said[-400:]}")
        self.running.clear()

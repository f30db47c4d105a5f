"""The programs that an experiment names: starting them, ending them, judging their exit codes.

Each has a folder of its own in the guest's memory and a clean environment. Its output goes to
programs/ in the run's folder.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import shutil
import signal
import subprocess
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from network import GuestError, libc, namespace, note

if TYPE_CHECKING:
    from collections.abc import Callable

HOMES = Path("/tmp/programs")  # noqa: S108 - in the guest's memory, with nobody else there
# Size limit of each file that a program writes, its output included.
MOST_BYTES = 64 << 20
# linux/prctl.h and linux/capability.h: CAP_SYS_RESOURCE would raise the limit, and CAP_SYS_PTRACE
# would write by a process without it. A new program gets neither.
PR_CAPBSET_DROP = 24
NO_CAPABILITIES = (24, 19)
# Time for a program to end after SIGTERM, in virtual time.
PATIENCE_S = 5.0


class _Running:
    """A program that has been started, and a thread that waits for its end."""

    def __init__(self, program: dict[str, Any], output: Path, now_ns: Callable[[], int]) -> None:
        self.program = program
        self.asked = False
        self.end_ns = 0
        self.error = output / f"{program['name']}.err"
        self.kept = output / program["name"]
        home = HOMES / program["name"]
        _furnish(home, program["files"])
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), **program["environment"]}
        out = output / f"{program['name']}.out"
        note(program["node"], program["run"])
        with namespace(program["node"]), out.open("wb") as stdout, self.error.open("wb") as stderr:
            limit = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))
            try:
                self.process = subprocess.Popen(
                    program["run"],
                    cwd=home,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                    preexec_fn=_keep_limits,  # noqa: PLW1509 - two calls without a lock
                )
            except OSError as error:
                said = f"{program['name']}: {program['run'][0]}: {error.strerror}"
                raise GuestError(said) from error
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        self._waiter = threading.Thread(target=self._wait, args=(now_ns,), daemon=True)
        self._waiter.start()

    def _wait(self, now_ns: Callable[[], int]) -> None:
        self.process.wait()
        self.end_ns = now_ns()

    def ask_to_end(self) -> None:
        """Send SIGTERM to the program and its children, if it has not ended."""
        if not self.asked and self._waiter.is_alive():
            self.asked = True
            os.killpg(self.process.pid, signal.SIGTERM)

    def finish(self) -> None:
        """Wait until the program has ended; kill it if it does not."""
        self._waiter.join(PATIENCE_S)
        if self._waiter.is_alive():
            os.killpg(self.process.pid, signal.SIGKILL)
            self._waiter.join()

    def keep(self) -> None:
        """Copy the files to keep into the run's folder; leave out those that are not there."""
        for name in self.program["keeps"]:
            file = HOMES / self.program["name"] / name
            if file.is_file():
                self.kept.mkdir(exist_ok=True)
                shutil.copyfile(file, self.kept / name)

    @property
    def trouble(self) -> str | None:
        """Return the problem with its end; None without one."""
        code, wanted = self.process.returncode, self.program["exit_code"]
        if wanted is None and self.asked:
            return None
        if self.asked:
            how = (
                "was still running when it had to end; "
                "`exit_code: null` is for what runs until then"
            )
        elif wanted is None:
            how = f"ended by itself, with exit status {code}, before it was asked to"
        elif code != wanted:
            how = f"exit status {code}, not {wanted}"
        else:
            return None
        said = self.last_words
        return f"{self.program['name']}: {how}" + (f": {said}" if said else "")

    @property
    def last_words(self) -> str:
        """Return the end of its standard error."""
        return self.error.read_text(errors="replace").strip()[-400:]


def _keep_limits() -> None:
    """Give up, for the program that follows, the capabilities to lift its limits."""
    for capability in NO_CAPABILITIES:
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def _furnish(home: Path, files: dict[str, dict[str, Any]]) -> None:
    """Make a program's folder with its files, readable only for its user."""
    home.mkdir(parents=True)
    for name, file in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(file["base64"]))
        path.chmod(0o700 if file["executable"] else 0o600)


class UserPrograms:
    """All programs that an experiment names.

    Args:
        programs: the plan's programs.
        output: the folder for their output.
        now_ns: reads the plan's clock.
    """

    def __init__(
        self, programs: list[dict[str, Any]], output: Path, now_ns: Callable[[], int]
    ) -> None:
        self._programs, self._output, self._now_ns = programs, output, now_ns
        self._running: dict[str, _Running] = {}

    def events(self) -> list[tuple[int, Callable[[], None]]]:
        """List the starts and ends, each with its time on the plan's clock."""
        return [
            (program[time], partial(act, program))
            for program in self._programs
            for time, act in (("at_ns", self._start), ("stop_ns", self._ask_to_end))
        ]

    def _start(self, program: dict[str, Any]) -> None:
        self._output.mkdir(exist_ok=True)
        self._running[program["name"]] = _Running(program, self._output, self._now_ns)

    def _ask_to_end(self, program: dict[str, Any]) -> None:
        self._running[program["name"]].ask_to_end()

    def finish(self) -> None:
        """Wait until all have ended, and write how each ended.

        Raises: GuestError if one did not end as required.
        """
        for running in self._running.values():
            running.finish()
            running.keep()
        ended = {
            name: {"end_ns": running.end_ns, "exit_status": running.process.returncode}
            for name, running in self._running.items()
        }
        if ended:
            (self._output / "ended.json").write_text(json.dumps(ended))
        troubles = {name: said for name, each in self._running.items() if (said := each.trouble)}
        if troubles:
            words = {name: each.last_words for name, each in self._running.items()}
            others = [
                f"{name} wrote: {said}"
                for name, said in words.items()
                if said and name not in troubles
            ]
            raise GuestError("\n".join([*troubles.values(), *others]))

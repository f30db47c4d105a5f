"""Commands, claims and events for tests in a guest; a claim fails with a sentence.

with Events() as events:
run("tc qdisc change dev d0 root dtm slots 5")
expect("slots", events.take()[0]["to"], "5")
"""

import contextlib
import ctypes
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

RUN = Path("/mnt/run")
TRACING = Path("/sys/kernel/tracing")
_MARK = "dtm_reallocation: "
_libc = ctypes.CDLL(None, use_errno=True)
# The network namespace of the cases, for calls of tc from another namespace.
HERE = "/proc/1/ns/net"


class ClaimError(Exception):
    """A claim of a case does not hold."""


def expect(what: str, got: Any, wanted: Any) -> None:
    """Fail with both values if they differ."""
    if got != wanted:
        raise ClaimError(f"{what}: expected {wanted!r}, got {got!r}")


def claim(what: str, holds: bool) -> None:
    """Fail if a claim does not hold."""
    if not holds:
        raise ClaimError(what)


def run(*commands: str, lines: str = "") -> str:
    """Run commands that must succeed; return the output of the last.

    Args:
        commands: their words.
        lines: the standard input of each.
    """
    said = ""
    for command in commands:
        argv = command.split()
        done = subprocess.run(argv, input=lines, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ClaimError(f"{command}: status {done.returncode}: {done.stderr.strip()}")
        said = done.stdout
    return said


@contextlib.contextmanager
def namespace(name: str) -> Iterator[None]:
    """Enter a network namespace for the duration of a `with`."""
    with Path("/proc/self/ns/net").open() as home, Path(f"/run/netns/{name}").open() as there:
        _setns(there.fileno())
        try:
            yield
        finally:
            _setns(home.fileno())


def _setns(fd: int) -> None:
    if _libc.setns(fd, 0) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def mount_tracing() -> None:
    """Mount tracefs, unless it is there."""
    if not (TRACING / "instances").exists():
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACING], check=True)


class Events:
    """The trace event dtm:dtm_reallocation of all network namespaces.

    Its buffer is one of its own (an instance of tracefs), which is removed afterwards.
    """

    def __init__(self) -> None:
        self._folder = TRACING / f"instances/test-{os.getpid()}"
        self._folder.mkdir()
        self._pipe = os.open(self._folder / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        (self._folder / "events/dtm/dtm_reallocation/enable").write_text("1")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._pipe)
        self._folder.rmdir()

    def take(self) -> list[dict[str, str]]:
        """Return the fields of each event since the last call, as words."""
        text = b""
        try:
            while True:
                text += os.read(self._pipe, 1 << 16)
        except BlockingIOError:
            lines = text.decode().splitlines()
        return [
            dict(word.split("=") for word in line.partition(_MARK)[2].split())
            for line in lines
            if _MARK in line
        ]


def report() -> None:
    """Report that this program is alive: the host ends a guest that is silent for long."""
    progress = {"time_ns": time.monotonic_ns(), "acked_bytes": 0, "queued_packets": 0}
    (RUN / "sockets/progress.json").write_text(json.dumps(progress) + "\n")

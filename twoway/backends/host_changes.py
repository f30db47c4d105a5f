"""A run's changes to the whole machine, and the process that undoes them.

The keeper process outlives the run that started it: it reads from a pipe that closes when the run
ends, even by kill -9, and then undoes the changes. A run records each change before it makes it. If
the keeper is killed as well, the next run undoes the changes first.

    python -m twoway.backends.host_changes FOLDER

undoes the changes recorded in FOLDER when its standard input ends.
"""

import copy
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from twoway.backends import host_interfaces
from twoway.contract.writing import written_aside
from twoway.errors import RunError, UsageError

_FOLDER = Path("/run/twoway")
_CHANGES = "changes.json"
_NOTHING: dict[str, Any] = {"settings": {}, "modules": [], "nodes": [], "links": {}}
# Time to wait until a module can be unloaded: the run's last sockets still use it.
_UNLOAD_S = 30.0


class HostChanges:
    """Changes to the machine that last as long as a `with`; one run at a time.

    Args:
        folder: the folder of the record of changes.
    """

    def __init__(self, folder: Path = _FOLDER) -> None:
        self._folder = folder
        self._changes: dict[str, Any] = copy.deepcopy(_NOTHING)
        self._keeper: subprocess.Popen[bytes] | None = None
        self._lock: IO[str] | None = None

    def __enter__(self) -> Self:
        """Lock the machine, undo the changes of a killed run, start the keeper.

        Raises: UsageError if another run holds the lock, or a killed run's changes cannot be
            undone.
        """
        self._folder.mkdir(exist_ok=True)
        self._lock = (self._folder / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise UsageError("another run uses this machine's kernel; wait for it") from None
        if not undo(self._folder):
            self._lock.close()
            raise UsageError(*self._left_in_words())
        self._keeper = subprocess.Popen(
            [sys.executable, "-P", "-m", "twoway.backends.host_changes", str(self._folder)],
            stdin=subprocess.PIPE,
            pass_fds=(self._lock.fileno(),),  # the machine stays locked until all is undone
            start_new_session=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        """Make the keeper undo the changes.

        Raises: RunError if some of them could not be undone.
        """
        assert self._keeper is not None
        assert self._keeper.stdin is not None
        assert self._lock is not None
        self._keeper.stdin.close()
        status = self._keeper.wait()
        self._lock.close()
        if status != 0 and kind is None:
            raise RunError(*self._left_in_words())

    def write_setting(self, path: Path, value: str) -> None:
        """Write one of the kernel's settings, a file under /proc/sys.

        Raises: RunError if the kernel has no such setting, or does not take the value.
        """
        try:
            self._changes["settings"].setdefault(str(path), path.read_text().strip())
            self._write_down()
            path.write_text(value)
            got = path.read_text().split()
        except OSError as error:
            raise RunError(f"{path}: {error.strerror}") from error
        if got != value.split():
            raise RunError(f"{path}: set {value}, reads {' '.join(got)}")

    def module(self, path: Path, parameters: Sequence[str]) -> None:
        """Load a module with parameters.

        Raises: RunError if the module is loaded already, or the kernel refuses it.
        """
        name = path.stem
        if Path(f"/sys/module/{name}").exists():
            raise RunError(
                f"module {name} is loaded already, perhaps with other parameters",
                f"`rmmod {name}`, unless something uses it",
            )
        self._changes["modules"].append(name)
        self._write_down()
        done = _command("insmod", str(path), *parameters)
        if done.returncode != 0:
            raise RunError(f"{done.stderr.strip()}", "with Secure Boot modules must be signed")

    def nodes(self, nodes: Sequence[str]) -> None:
        """Make a network namespace for each node.

        Raises: RunError if a namespace of that name exists.
        """
        for node in nodes:
            self._changes["nodes"].append(node)
            self._write_down()
            host_interfaces.add_namespace(node)

    def link(self, name: str, interface: str) -> None:
        """Move an interface of this machine into a node's namespace, as "NODE-ethN".

        Raises: RunError if the interface does not exist or has an address.
        """
        self._changes["links"][name] = host_interfaces.describe_link(interface)
        self._write_down()
        host_interfaces.lend(interface, name)

    def _write_down(self) -> None:
        """Record a change before making it, in case the run is killed."""
        _write(self._folder, self._changes)

    def _left_in_words(self) -> tuple[str, str]:
        return (
            "this machine still has changes of a run",
            f"{self._folder / _CHANGES} says what is left",
        )


def _write(folder: Path, changes: dict[str, Any]) -> None:
    with written_aside(folder / _CHANGES) as file:
        file.write(json.dumps(changes).encode())
        file.flush()
        os.fsync(file.fileno())


def undo(folder: Path) -> bool:
    """Undo the changes recorded in a folder.

    Returns: True if all of them are undone.
    """
    path = folder / _CHANGES
    try:
        changes = _NOTHING | json.loads(path.read_text())
    except FileNotFoundError:
        return True
    lent = {name: was for name, was in changes["links"].items() if not _give_back(name, was)}
    nodes = {host_interfaces.node_of(name) for name in lent}
    for node in set(changes["nodes"]) - nodes:
        host_interfaces.remove_namespace(node)
    modules = [name for name in changes["modules"] if not _unload(name)]
    for setting, value in changes["settings"].items():
        Path(setting).write_text(value)
    if lent or modules:
        left = {"modules": modules, "nodes": sorted(nodes), "links": lent}
        _write(folder, _NOTHING | left)
        return False
    path.unlink()
    return True


def _give_back(name: str, was: dict[str, Any]) -> bool:
    try:
        host_interfaces.give_back(name, was)
    except RunError as error:
        sys.stderr.write(f"{error}\n")
        return False
    return True


def _unload(name: str) -> bool:
    deadline = time.monotonic() + _UNLOAD_S
    while Path(f"/sys/module/{name}").exists():
        if _command("rmmod", name).returncode != 0:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
    return True


def _command(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def main() -> int:
    """Wait until the run ends, then undo its changes."""
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.SIG_IGN)
    sys.stdin.buffer.read()
    return 0 if undo(Path(sys.argv[1])) else 1


if __name__ == "__main__":
    sys.exit(main())

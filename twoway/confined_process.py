"""Starting and watching a program in the sandbox, and ending it with all of its processes.

The files that a sandbox wrote are read only when its last process is gone.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from twoway.confinement import refusal
from twoway.errors import TwowayError

POLL_S, _SOON_S = 0.1, 0.01
# A killed process is gone at once, unless it waits for a disk.
_GONE_S = 30.0
# Size limit of a program's output.
_MOST_WORDS = 1 << 20


@dataclass(frozen=True)
class Ended:
    """The end of a program.

    Attributes:
        status: its status as subprocess reports it.
        answer: the first mebibyte of its standard output.
        words: the first mebibyte of its standard error.
        most_bytes: the larger of the two whole sizes.
    """

    status: int
    answer: bytes
    words: bytes
    most_bytes: int


@contextlib.contextmanager
def start_confined(
    argv: Sequence[str], output: int, errors: int
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command of confined_command() for a `with`, and end all its processes after it.

    Raises: TwowayError if the container is the sandbox, and a process has detached itself.
    """
    ended, lifeline = os.pipe()
    try:
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
                pass_fds=(lifeline,),
            )
        finally:
            os.close(lifeline)
        try:
            yield process
        finally:
            _end(process)
            _read_to_end(ended)
    finally:
        os.close(ended)


def run_confined(
    argv: Sequence[str], *, longest_s: float, look: Callable[[], None] = lambda: None
) -> Ended:
    """Run a command of confined_command() to its end.

    Its output goes to files in memory, whose size `prlimit --fsize` limits; a pipe has no limit.

    Args:
        argv: the command.
        longest_s: wall time after which it is killed.
        look: called about ten times a second; an exception of it ends the command.

    Raises: TimeoutError if it was killed; TwowayError as start_confined().
    """
    with contextlib.ExitStack() as stack:
        files = [os.memfd_create(name) for name in ("answer", "words")]
        for file in files:
            stack.callback(os.close, file)
        deadline = time.monotonic() + longest_s
        with start_confined(argv, *files) as process:
            while lives(process):
                look()
                if time.monotonic() > deadline:
                    raise TimeoutError
        answer, words = (os.pread(file, _MOST_WORDS, 0) for file in files)
        most_bytes = max(os.fstat(file).st_size for file in files)
        return Ended(process.returncode, answer, words, most_bytes)


def lives(process: subprocess.Popen[bytes], at_most_s: float = POLL_S) -> bool:
    """Tell whether a process is still alive, after waiting for its end."""
    if process.poll() is None:
        with _opened(process.pid) as end:  # subprocess's own wait polls only 20 times a second
            select.select([end], [], [], at_most_s)
    return process.poll() is None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a sandbox's processes, and wait until the last is gone.

    The command is unshare (confinement.py), which waits for its child, the first process of a
    namespace: the kernel releases that process when the namespace is empty. So the child is killed,
    not unshare.
    """
    while process.poll() is None:
        if refusal():
            os.killpg(process.pid, signal.SIGKILL)
        for child in _children(process.pid):
            with contextlib.suppress(ProcessLookupError), _opened(child) as opened:
                if child in _children(process.pid):  # and not another process with the same number
                    signal.pidfd_send_signal(opened, signal.SIGKILL)
        lives(process, _SOON_S)


@contextlib.contextmanager
def _opened(process: int) -> Iterator[int]:
    opened = os.pidfd_open(process)
    try:
        yield opened
    finally:
        os.close(opened)


def _children(parent: int) -> list[int]:
    """List a process's children; not every kernel provides such a list."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # NUMBER (NAME) STATE PARENT ..., with any character in NAME.
            if int(path.read_bytes().rpartition(b")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found


def _read_to_end(ended: int) -> None:
    """Wait until no process has the other end of the lifeline, and ignore what is written to it."""
    deadline = time.monotonic() + _GONE_S
    while select.select([ended], [], [], max(0.0, deadline - time.monotonic()))[0]:
        if not os.read(ended, 1 << 16):
            return
    raise TwowayError("a process that only the container holds has not ended")

"""Run programs on one processor; measure their time and memory."""

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ran:
    """The result of running a program.

    Attributes:
        seconds: wall time, start-up included.
        peak_bytes: peak of resident memory.
        output: its standard output.
    """

    seconds: float
    peak_bytes: int
    output: str


class ProgramFailedError(Exception):
    """The error for a program that failed; has the end of its standard error."""


def run(argv: Sequence[str | Path], *, keep_output: bool = True) -> Ran:
    """Run a program on the last processor.

    Args:
        argv: the program and its arguments.
        keep_output: False to throw its output away.

    Raises: ProgramFailedError if its exit status is not 0.
    """
    words = ["taskset", "-c", str(max(os.sched_getaffinity(0))), *map(str, argv)]
    with tempfile.TemporaryFile() as complaints, tempfile.TemporaryFile() as output:
        began = time.monotonic()
        process = subprocess.Popen(
            words, stdout=output if keep_output else subprocess.DEVNULL, stderr=complaints
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            complaints.seek(0)
            text = complaints.read()[-500:].decode(errors="replace")
            raise ProgramFailedError(f"{' '.join(words)}: exit {process.returncode}: {text}")
        output.seek(0)
        return Ran(seconds, usage.ru_maxrss * 1024, output.read().decode(errors="replace"))

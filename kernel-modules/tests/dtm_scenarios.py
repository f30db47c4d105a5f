"""What cannot be said as one command and its answer: scenarios named by the cases of dtm/*.yml."""

import subprocess
from typing import Any

MODULE = "/mnt/bin/sch_dtm.ko"
EVENTS = "/mnt/bin/dtm-events"


class ClaimError(Exception):
    """What a case claims does not hold."""


def expect(what: str, got: Any, wanted: Any) -> None:
    """Fail with both values if they differ."""
    if got != wanted:
        raise ClaimError(f"{what}: expected {wanted!r}, got {got!r}")


def run(*commands: str) -> str:
    """Run commands that must succeed; what the last one said."""
    said = ""
    for command in commands:
        done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise ClaimError(f"{command}: status {done.returncode}: {done.stderr.strip()}")
        said = done.stdout
    return said


def without_module() -> None:
    """dtm-events says that there is nothing to listen to."""
    done = subprocess.run([EVENTS], capture_output=True, text=True, check=False)
    expect("standard error", done.stderr, "dtm-events: the kernel has no dtm: load sch_dtm first\n")
    expect("standard output", done.stdout, "")
    expect("exit status", done.returncode, 1)

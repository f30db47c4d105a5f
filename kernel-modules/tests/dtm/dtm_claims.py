"""Commands and claims for the cases of sch_dtm; a claim fails with a sentence."""

import subprocess
from pathlib import Path
from typing import Any

RUN = Path("/mnt/run")
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


def run(*commands: str) -> str:
    """Run commands that must succeed; return the output of the last."""
    said = ""
    for command in commands:
        done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise ClaimError(f"{command}: status {done.returncode}: {done.stderr.strip()}")
        said = done.stdout
    return said

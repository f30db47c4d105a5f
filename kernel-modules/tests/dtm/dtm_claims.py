"""What cases for sch_dtm are made of: commands, and claims that fail with a sentence."""

import subprocess
from pathlib import Path
from typing import Any

RUN = Path("/mnt/run")
# The network namespace of the cases, as tc takes it from another.
HERE = "/proc/1/ns/net"


class ClaimError(Exception):
    """What a case claims does not hold."""


def expect(what: str, got: Any, wanted: Any) -> None:
    """Fail with both values if they differ."""
    if got != wanted:
        raise ClaimError(f"{what}: expected {wanted!r}, got {got!r}")


def claim(what: str, holds: bool) -> None:
    """Fail if it does not hold."""
    if not holds:
        raise ClaimError(what)


def run(*commands: str) -> str:
    """Run commands that must succeed; what the last one said."""
    said = ""
    for command in commands:
        done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise ClaimError(f"{command}: status {done.returncode}: {done.stderr.strip()}")
        said = done.stdout
    return said

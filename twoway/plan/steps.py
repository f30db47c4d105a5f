"""Steps of a plan, as plain data: what is run where, and what must be read back."""

from typing import Any

# Where a guest finds programs and modules of ours.
GUEST_BIN = "/mnt/bin"


def step(node: str | None, **what: Any) -> dict[str, Any]:
    """Run something in a node, or in the guest itself for None."""
    return {"node": node, **what}


def check(
    node: str, name: str, command: str, expect: list[tuple[list[str], Any]]
) -> dict[str, Any]:
    """Run a command and compare parts of its JSON output with what is expected."""
    return step(node, check=command.split(), name=f"{node}-{name}", expect=expect)

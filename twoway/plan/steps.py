"""Steps of a plan as plain data: commands, nodes, expected output."""

from typing import Any

# The folder of our programs and modules in a guest.
GUEST_BIN = "/mnt/bin"


def step(node: str | None, **what: Any) -> dict[str, Any]:
    """Make a step that runs in a node's namespace, or in the guest's.

    Args:
        node: the node; None for the guest's own namespace.
        what: fields of the step.
    """
    return {"node": node, **what}


def check(
    node: str, name: str, command: str, expect: list[tuple[list[str], Any]]
) -> dict[str, Any]:
    """Make a step that checks parts of a command's JSON output."""
    return step(node, check=command.split(), name=f"{node}-{name}", expect=expect)

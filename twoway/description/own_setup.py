"""Commands by which an experiment's file sets up hosts and routers: `setup`, one a line."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from twoway.contract.model import text
from twoway.contract.plan import Command

DESCRIPTION = (
    "commands of a shell that are run here before traffic, one a line: `ip`, `tc`, `nft`, `wg` and "
    "others of this machine, each with exit status 0. `kernel: wide` has what they may need"
)
Setup = Annotated[str, text(r"^[\t\n -~]*$", "lines of printed ASCII characters", most=16384)]
_PROGRAM = re.compile(r"([a-z][a-z0-9.+-]*)(?: |$)")
# Words that begin a line of a shell, and are no programs.
_SHELLS_OWN = ("cd", "exec", "export", "for", "if", "set", "ulimit", "umask", "until", "while")


@dataclass(frozen=True)
class SetupLine:
    """A command: its node, its field and line in the experiment's file, and its text."""

    node: str
    field: str
    number: int
    text: str

    @property
    def place(self) -> str:
        """The field and the line in the file."""
        return f"{self.field}: line {self.number}"

    @property
    def command(self) -> Command:
        """The step of a plan."""
        return Command(node=self.node, run=("sh", "-c", self.text))

    @property
    def program(self) -> str | None:
        """The program that it names first; None if a shell must read it to know."""
        found = _PROGRAM.match(self.text)
        return found[1] if found and found[1] not in _SHELLS_OWN else None


def setup_lines(nodes: Mapping[str, Mapping[str, Any]]) -> Iterator[SetupLine]:
    """List the commands of all nodes in order, without comments.

    Args:
        nodes: for the fields `hosts` and `routers`, settings by the node's name.
    """
    for field, settings in nodes.items():
        for node, each in settings.items():
            for number, line in enumerate((each.setup or "").split("\n"), start=1):
                if (stripped := line.strip()) and not stripped.startswith("#"):
                    yield SetupLine(node, f"{field}.{node}.setup", number, stripped)


def setup_problems(lines: Iterator[SetupLine]) -> list[str]:
    """List commands that no shell can read."""
    problems = []
    for line in lines:
        try:
            shlex.split(line.text, comments=True)
        except ValueError as error:
            problems.append(f"{line.place}: {str(error).lower()}, got {line.text:.80}")
    return problems

"""Nodes as network namespaces, and programs that run in them.

Starting a process takes long under user-mode Linux, so ip and tc are loaded once, and read their
commands in batches.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import subprocess
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from fork_server import ForkServer

TYPE_CHECKING = False  # `typing` takes long to load
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

NETNS = Path("/run/netns")
CLONE_NEWNET = 0x40000000
# Descriptors of instruments in the kernel and of nodes' namespaces. There are few, because mnexec
# closes every possible descriptor, a system call each (decision 0005).
INSTRUMENTS = ("recorders", "captures")
MOST_DESCRIPTORS = 1024
SPARE_DESCRIPTORS = 100
# The error of a kernel without a module, as tc prints it; the start of the module's name, and the
# place of its end.
_LACKS = {
    "Failed to load TC action module": ("act", r" action (\w+)"),
    "TC classifier not found": ("cls", r" (?:egress|ingress) (\w+)"),
    "Specified qdisc kind is unknown": ("sch", r"^qdisc \w+ dev \S+(?: root| [ph]\w+ \S+)* (\w+)"),
}

libc = ctypes.CDLL(None, use_errno=True)
# The commands carried out so far, in the words of `twoway plan`.
carried_out: list[str] = []


class GuestError(Exception):
    """A failure, with a sentence for the host to show."""


def note(node: str | None, words: Iterable[str], lines: Iterable[str] = ()) -> None:
    """Record a command that is carried out, with the lines of its standard input."""
    where = f"[{node or 'guest'}]"
    carried_out.append(" ".join((where, *words)))
    carried_out.extend(f"{where}     {line}" for line in lines)


def limit_descriptors(plan: dict[str, Any]) -> None:
    """Set the limit of descriptors to what the plan needs, and little more."""
    nodes = {step["node"] for step in plan["setup"]}
    needed = sum(len(plan[kind]) for kind in INSTRUMENTS) + len(nodes) + SPARE_DESCRIPTORS
    most = max(MOST_DESCRIPTORS, needed)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextmanager
def namespace(node: str | None) -> Iterator[None]:
    """Enter a node's network namespace for a `with`; None: stay."""
    if node is None:
        yield
        return
    _call("setns", _namespace_of(node), CLONE_NEWNET)
    try:
        yield
    finally:
        _call("setns", _namespace_of("init"), CLONE_NEWNET)


@cache
def _namespace_of(node: str) -> int:
    """Return a node's namespace, opened once for the life of this program."""
    return os.open(NETNS / node, os.O_RDONLY)


def _call(name: str, *arguments: Any) -> None:
    if getattr(libc, name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def run_program(node: str | None, argv: list[str], lines: Iterable[str] = ()) -> str:
    """Run a program that must end with status 0, and return its output."""
    batch = [*lines]
    note(node, argv, batch)
    text = "".join(line + "\n" for line in batch)
    if argv[-2:] == ["-batch", "-"]:
        code, out, err = _fork_server(*argv).run(NETNS / (node or "init"), text)
    else:
        done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
        code, out, err = done.returncode, done.stdout, done.stderr
    if code != 0:
        said = " ".join((err or out).split())
        raise GuestError(f"{node or 'guest'}: {_complaint(argv, batch, code, said)}")
    return out


def _complaint(argv: list[str], batch: list[str], code: int, said: str) -> str:
    """Build the sentence for a command that failed, from the program's own words.

    In a batch the line that failed is the command: ip and tc end with "Command failed -:LINE".
    """
    words, mark, number = said.rpartition("Command failed -:")
    if not (mark and number.isdigit() and 0 < int(number) <= len(batch)):
        return f"{' '.join(argv)}: {said or f'exit status {code}'}"
    line = batch[int(number) - 1]
    said = words.strip() or "refused without an error message"
    return f"{' '.join(argv)}: line {number}, {line!r}: {said}{_lacking(line, said)}"


def _lacking(line: str, said: str) -> str:
    """Return the module that the kernel lacks, if tc's error on a line means that."""
    for words, (kind, place) in _LACKS.items():
        if words in said and (found := re.search(place, line)):
            name = f"{kind}_{found[1]}"
            return f": the kernel has no {name}, built in or as a module"
    return ""


@cache
def _fork_server(*argv: str) -> ForkServer:
    return ForkServer(argv)

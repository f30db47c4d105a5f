"""tc's own opinion on words for it, before any guest runs."""

import os
import shutil
import subprocess
from functools import cache

from twoway.links.tc_words import TcWords

# No interface has this name: tc reads the words before it looks for it.
_NOWHERE = "twoway-nowhere"
_GOOD = f'Cannot find device "{_NOWHERE}"'


def tc_problems(words: TcWords) -> list[str]:
    """List what tc says of the words of qdiscs and classes, each after the field.

    tc reads a filter's words only where the interface is: those of a filter fail in the guest.
    There are none for qdiscs and filters that the guest's kernel lacks.
    """
    if words.name_lacking():
        return []
    first = f"qdisc add dev {_NOWHERE} root handle 1: {words.first}"
    lines = zip((words.first, *words.others), (first, *words.tree(_NOWHERE)), strict=True)
    said = {given: _said(line) for given, line in lines if not line.startswith("filter")}
    return [f".tc: {given!r}: tc says {why}" for given, why in said.items() if why]


@cache
def _said(line: str) -> str:
    """Return tc's first words on a line that it cannot read; empty without tc."""
    tc = shutil.which(
        "tc", path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
    )
    if not tc:
        return ""
    done = subprocess.run((tc, *line.split(" ")), capture_output=True, text=True, check=False)
    said = done.stderr.partition("Usage")[0].strip()
    return "" if said == _GOOD else "; ".join(said.splitlines())

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
    lines = zip(words.others, words.tree(_NOWHERE), strict=True)
    said = {given: _said(line) for given, line in lines if not line.startswith("filter")}
    return [
        f".tc: {given!r}: tc says {why}"
        for given, why in {words.first: refusal(words.first), **said}.items()
        if why
    ]


def refusal(qdisc: str) -> str:
    """Return what tc says against a qdisc's words; empty if it takes them."""
    return _said(f"qdisc add dev {_NOWHERE} root handle 1: {qdisc}")


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
    # Before it looks for the interface, tc may warn: "RED: set bandwidth to 10Mbit".
    return "" if said.endswith(_GOOD) else "; ".join(said.splitlines())

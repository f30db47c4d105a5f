"""Qdiscs in tc's own words: one, or a tree of qdiscs, classes and filters."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field

from twoway.contract.model import Model
from twoway.messages import suggest
from twoway.paths import VM

# The first line, and those of the tree inside.
_FIRST = re.compile(r"[a-z][a-z0-9_]*( [A-Za-z0-9_.:/%-]+)*")
_INSIDE = re.compile(r"(qdisc|class|filter) add parent [0-9a-f]+:[0-9a-f]*( [A-Za-z0-9_.:/%-]+)+")
# What precedes the kind in a line of tc, each with a value.
_BEFORE_KIND = ("parent", "handle", "classid", "protocol", "prio", "pref", "estimator")
# Qdiscs that have a packet for the link as long as one waits in them.
_NEVER_HOLD = {
    *("pfifo", "bfifo", "pfifo_fast", "pfifo_head_drop", "sfq", "red", "gred", "sfb", "choke"),
    *("codel", "fq_codel", "pie", "fq_pie", "hhf", "prio", "drr", "qfq", "ets", "skbprio"),
    *("multiq", "fq", "cake"),
}
# Options with which the last two of them hold packets.
_HOLD = {"fq": "maxrate", "cake": "bandwidth"}
# Qdiscs whose option `limit` counts packets, and that tc can change; it cannot change sfq.
_COUNT_PACKETS = {
    *("pfifo", "pfifo_head_drop", "choke", "codel", "fq_codel", "pie", "fq_pie", "hhf"),
    *("fq", "netem"),
}
_LIMIT = re.compile(r"(?<= limit )[0-9]+(?![^ ])")
# An option that two of them keep for good: tc refuses it in a change.
_FOR_GOOD = re.compile(r"(?<= )flows [0-9]+ ?")
_KEEP_FLOWS = ("fq_codel", "fq_pie")


def _lines(given: object) -> object:
    if isinstance(given, list) and any(isinstance(line, dict) for line in given):
        raise ValueError("YAML takes a line with `: ` for a mapping: write the lines below `tc: |`")
    is_list = isinstance(given, list) and all(isinstance(line, str) for line in given)
    return "\n".join(given) if isinstance(given, list) and is_list else given


def _checked(given: str) -> str:
    first, *inside = given.strip().splitlines() or [""]
    if first.split(" ")[0] in ("tc", "qdisc"):
        raise ValueError("must begin with a qdisc's name, without `tc qdisc add dev ...`")
    if not _FIRST.fullmatch(first):
        raise ValueError("must be words of tc: a qdisc and its options")
    for number, line in enumerate(inside, start=2):
        if not _INSIDE.fullmatch(line):
            begin = "`qdisc add parent `, `class add parent ` or `filter add parent `"
            raise ValueError(f"line {number} must begin with {begin}, then a handle, without dev")
    return "\n".join((first, *inside))


_Lines = Annotated[
    str,
    Field(max_length=16384),
    BeforeValidator(_lines, json_schema_input_type=str | list[str]),
    AfterValidator(_checked),
]


class TcWords(Model):
    """A qdisc in tc's own words, or a tree of them."""

    tc: _Lines = Field(
        description="what follows `tc qdisc replace dev INTERFACE root handle 1:`, such as "
        "`fq maxrate 20mbit`; lines may follow, without `dev`: `class add parent 1: classid 1:1 "
        "htb rate 5mbit`, `qdisc add parent 1:1 fq_codel`, `filter add parent 1: ...`. Inside a "
        "link's shaper the first handle is 2:"
    )

    @property
    def first(self) -> str:
        """The words of the outer qdisc."""
        return self.tc.partition("\n")[0]

    @property
    def others(self) -> list[str]:
        """The lines of the tree inside."""
        return self.tc.split("\n")[1:]

    @property
    def kind(self) -> str:
        """The outer qdisc's name."""
        return self.first.partition(" ")[0]

    def tree(self, dev: str) -> tuple[str, ...]:
        """List the tc batch lines of the tree inside the outer qdisc."""
        return tuple(line.replace(" add ", f" add dev {dev} ", 1) for line in self.others)

    @property
    def _parts(self) -> Iterator[tuple[str, str, str]]:
        """List what each line adds, a qdisc, class or filter, with its place and its words."""
        yield "qdisc", "", self.first
        for line in self.others:
            what, _, *words = line.split(" ")
            n = 0
            while len(words) > n + 1 and words[n] in _BEFORE_KIND:
                n += 2
            yield what, " ".join(words[:n]), " ".join(words[n:])

    @property
    def _kinds(self) -> Iterator[tuple[str, str]]:
        """List what each line adds, a qdisc, class or filter, with its kind."""
        return ((what, words.partition(" ")[0]) for what, _, words in self._parts)

    @property
    def never_holds(self) -> bool:
        """True if the tree has a packet for the link as long as one waits in it."""
        qdiscs = [words.split(" ") for what, _, words in self._parts if what != "filter"]
        return all(kind in _NEVER_HOLD and _HOLD.get(kind) not in words for kind, *words in qdiscs)

    def change_limit(self, packets: int) -> tuple[Self, list[tuple[str, str]]]:
        """Give another limit to the qdiscs inside which count packets.

        Returns: the tree, and of each such qdisc its place, empty for the outer one, and the words
        that change it.
        """
        lines, changes = self.tc.split("\n"), []
        for n, (what, place, words) in enumerate(self._parts):
            kind, limited = words.partition(" ")[0], _LIMIT.sub(str(packets), words)
            if what == "qdisc" and kind in _COUNT_PACKETS and _LIMIT.search(words):
                lines[n] = lines[n].removesuffix(words) + limited
                kept = _FOR_GOOD.sub("", limited) if kind in _KEEP_FLOWS else limited
                changes.append((place, kept.rstrip()))
        return self.model_copy(update={"tc": "\n".join(lines)}), changes

    def name_lacking(self) -> str:
        """Name a qdisc or filter that the guest's kernel lacks, and those that it has."""
        for what, kind in self._kinds:
            there = kernel_has("CLS" if what == "filter" else "SCH")
            if kind not in there:
                noun = "filter" if what == "filter" else "qdisc"
                others = (
                    suggest(kind, there) or f"; it has {', '.join(there)}; `kernel: wide` has all"
                )
                return f"the guest's kernel has no {noun} {kind}{others}"
        return ""


def in_words(given: object) -> object:
    """Take a string for the words of a qdisc."""
    return {"tc": given} if isinstance(given, str) else given


# A qdisc; one without options may be given by its name alone.
Qdisc = Annotated[TcWords, BeforeValidator(in_words, json_schema_input_type=TcWords | str)]


@cache
def kernel_has(what: str) -> list[str]:
    """List the qdiscs (SCH) or filters (CLS) of the guest's kernel."""
    config = (VM / "guest.config").read_text("utf-8")
    found = re.findall(rf"^CONFIG_NET_{what}_([A-Z0-9_]+)=y", config, re.MULTILINE)
    own = ["pfifo", "bfifo", "pfifo_fast", "pfifo_head_drop", "noqueue"] if what == "SCH" else []
    return sorted({each.lower() for each in found} - {"ingress", "act"} | {*own})

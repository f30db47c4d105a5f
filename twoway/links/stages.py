"""The rules on which elements a link may combine.

A packet passes a policer, a queue, a shaper, a delay, and losses, jitter and copies behind them:

    policer < queue: drop-tail, aqm, ack_queue or tc's words
    < shaper: rate_mbit, rate, dtm or half_duplex < delay_ms or delay < loss, impairments

Any queue is possible with any shaper; twoway/links/proof.py says what no check of such a link can
follow.
"""

from collections.abc import Iterator
from typing import Any

from twoway.links.direction import elements
from twoway.links.element import Delay, Link, ManagedQueue, RateShaper
from twoway.links.half_duplex import HalfDuplex

_ONE_QUEUE = "a link has one queue"
_NETEMS = "ack_queue uses the delay's netem in another way"

# A link may have one field of each row. If two are given, the second is refused with the first's
# reason.
_STAGES: tuple[dict[str, str], ...] = (
    {
        "half_duplex": "an end of a half-duplex link has a rate_mbit",
        "rate": "a link has one shaper",
        "dtm": "",
    },
    {"aqm": _ONE_QUEUE, "ack_queue": _ONE_QUEUE, "queue": ""},
    {"half_duplex": "the rate of ack_queue is a link's own", "ack_queue": ""},
    {"delay": _NETEMS, "ack_queue": ""},
    {"ack_queue": _NETEMS, "impairments": ""},
)
# The values that stand for the absence of an element.
_NOTHING = ("drop-tail", "shared", 0, None)
# The cells that Linux counts beside netem's rate: those of ATM.
_ATM = (48, 5)


def stage_problems(link: Link, *, half_duplex: bool) -> list[str]:
    """List the combinations of elements that a link may not have, each after its field.

    Args:
        link: one direction of a link.
        half_duplex: True if it shares a medium with the other direction.
    """
    refused: dict[str, str] = {}
    for stage in _STAGES:
        given = [field for field in stage if _given(link, field, half_duplex=half_duplex)]
        first, *others = given or [""]
        for field in others:
            refused.setdefault(field, f".{field}: {stage[first]}{_got(link, field)}")
    kinds = elements().items()
    rates = ["rate_mbit", *(field for field, kind in kinds if issubclass(kind, RateShaper))]
    delays = ["delay_ms", *(field for field, kind in kinds if issubclass(kind, Delay))]
    return [
        *_unless_one(link, rates, "how fast it is"),
        *_unless_one(link, delays, "how long packets travel"),
        *refused.values(),
        *_cell_problems(link, half_duplex=half_duplex),
    ]


def _cell_problems(link: Link, *, half_duplex: bool) -> Iterator[str]:
    """Refuse cells that only netem's rate counts, with a shaper that is not netem."""
    cells = (link.cell_bytes, link.cell_overhead_bytes)
    is_netem = not (half_duplex or link.elements.contains(ManagedQueue, RateShaper))
    if link.cell_bytes and cells != _ATM and not is_netem:
        yield (
            ".cell_bytes: without a rate_mbit and a drop-tail queue Linux counts ATM's cells "
            f"alone, of 48 bytes with 5 of cell_overhead_bytes; got {cells[0]} with {cells[1]}"
        )


def _unless_one(link: Link, fields: list[str], what: str) -> list[str]:
    """Refuse a link that has none or several of some fields."""
    given = [field for field in fields if getattr(link, field) is not None]
    if len(given) == 1:
        return []
    one_of = f"{', '.join(fields[:-1])} or {fields[-1]}"
    return [f": {one_of} says {what}; got {' and '.join(given) or 'none'}"]


def _given(link: Link, field: str, *, half_duplex: bool) -> bool:
    return half_duplex if field == HalfDuplex.FIELD else _value(link, field) not in _NOTHING


def _got(link: Link, field: str) -> str:
    value = _value(link, field)
    return f"; got {value!r}" if isinstance(value, str | int) else ""


def _value(link: Link, field: str) -> Any:
    return getattr(link, field, None)

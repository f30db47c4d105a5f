"""The rules on which elements a link may combine.

A packet passes a policer, a queue, a delay, and losses, jitter and copies behind the queue:

    policer < queue: one of rate, dtm, half_duplex, aqm, ack_queue | delay: netem or a table
    < loss, impairments
"""

from collections.abc import Iterator
from typing import Any

from twoway.links.element import BehindQueue, Delay, Link, RatedQueue
from twoway.links.half_duplex import HalfDuplex
from twoway.links.registry import elements

_UNTOLD = (
    "its drops look like those of a channel, an aqm or two queues; it needs a drop-tail "
    "queue of rate_mbit or rate"
)
_NO_NETEM = "netem does it, and a delay that changes does not use netem"

# A link may have one field of each row. If two are given, the second is refused with the first's
# reason.
_STAGES: tuple[dict[str, str], ...] = (
    {
        "half_duplex": "an end of a half-duplex link has one drop-tail queue of a rate_mbit, "
        "without cells",
        "rate": "a rate that changes has one drop-tail queue, without cells",
        "dtm": "a dtm channel has one drop-tail queue, without cells",
        "cell_bytes": "a link with cells has one drop-tail queue",
        "aqm": "an aqm is one queue, and a shaper of its own",
        "ack_queue": "",
    },
    {
        "half_duplex": "not possible at an end of a half-duplex link",
        "dtm": _UNTOLD,
        "aqm": _UNTOLD,
        "ack_queue": _UNTOLD,
        "policer": "",
    },
    {"delay": _NO_NETEM, "ack_queue": ""},
    {"ack_queue": "netem does it, and ack_queue uses netem in another way", "impairments": ""},
)
_COPIES = "impairments.duplicate_percent"
_UNCOUNTED = (
    "a copy that is lost leaves no trace, so that losses could not be counted; a link has copies "
    "or losses"
)
# The values that stand for the absence of an element.
_NOTHING = ("drop-tail", "shared", 0, None)


def stage_problems(link: Link, *, half_duplex: bool) -> list[str]:
    """List the combinations of elements that a link may not have, each after its field.

    Args:
        link: one direction of a link.
        half_duplex: True if it shares a medium with the other direction.
    """
    refused: dict[str, str] = {}
    for stage in (*_STAGES, *_behind_queue()):
        given = [field for field in stage if _given(link, field, half_duplex=half_duplex)]
        first, *others = given or [""]
        for field in others:
            refused.setdefault(field, f".{field}: {stage[first]}{_got(link, field)}")
    kinds = elements().items()
    rates = ["rate_mbit", *(field for field, kind in kinds if issubclass(kind, RatedQueue))]
    delays = ["delay_ms", *(field for field, kind in kinds if issubclass(kind, Delay))]
    return [
        *_unless_one(link, rates, "how fast it is"),
        *_unless_one(link, delays, "how long packets travel"),
        *refused.values(),
    ]


def _behind_queue() -> Iterator[dict[str, str]]:
    """List the rows of all elements behind the queue: netem does them, and copies hide losses."""
    for field, kind in elements().items():
        if issubclass(kind, BehindQueue):
            yield {"delay": _NO_NETEM, field: ""}
            if kind.LOSES:
                yield {field: _UNCOUNTED, _COPIES: ""}


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


def _value(model: Any, path: str) -> Any:
    """Return the value of a field, or of a field's field; None without it."""
    for name in path.split("."):
        model = getattr(model, name, None)
    return model

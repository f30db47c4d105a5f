"""The rules on which elements a link may combine.

A packet passes a policer, a queue, a delay, and losses, jitter and copies behind the queue:

    policer < queue: one of rate, dtm, half_duplex, aqm, ack_queue | delay: netem or a table
    < loss, impairments
"""

from typing import TYPE_CHECKING, Any

from twoway.description.links import Delay, RatedQueue
from twoway.description.links.registry import elements

if TYPE_CHECKING:
    from twoway.description.experiment import Direction, Profile

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
    {
        "delay": _NO_NETEM,
        "ack_queue": "netem does it, and ack_queue uses netem in another way",
        "impairments": "",
    },
    {"delay": _NO_NETEM, "loss": ""},
    {
        "loss": "a copy that is lost leaves no trace, so that losses could not be counted; a link "
        "has copies or losses",
        "impairments.duplicate_percent": "",
    },
)
# The values that stand for the absence of an element.
_NOTHING = ("drop-tail", "shared", 0, None)


def stage_problems(direction: "Direction", profile: "Profile") -> list[str]:
    """List the combinations of elements that a direction may not have, each after its field."""
    refused: dict[str, str] = {}
    for stage in _STAGES:
        first, *others = [field for field in stage if _given(direction, profile, field)] or [""]
        for field in others:
            refused.setdefault(field, f".{field}: {stage[first]}{_got(direction, field)}")
    kinds = elements().items()
    rates = ["rate_mbit", *(field for field, kind in kinds if issubclass(kind, RatedQueue))]
    delays = ["delay_ms", *(field for field, kind in kinds if issubclass(kind, Delay))]
    return [
        *_unless_one(direction, rates, "how fast it is"),
        *_unless_one(direction, delays, "how long packets travel"),
        *refused.values(),
    ]


def _unless_one(direction: "Direction", fields: list[str], what: str) -> list[str]:
    """Refuse a direction that has none or several of some fields."""
    given = [field for field in fields if getattr(direction, field) is not None]
    if len(given) == 1:
        return []
    one_of = f"{', '.join(fields[:-1])} or {fields[-1]}"
    return [f": {one_of} says {what}; got {' and '.join(given) or 'none'}"]


def _given(direction: "Direction", profile: "Profile", field: str) -> bool:
    at = profile if field == "half_duplex" else direction
    return _value(at, field) not in _NOTHING


def _got(direction: "Direction", field: str) -> str:
    value = _value(direction, field)
    return f"; got {value!r}" if isinstance(value, str | int) else ""


def _value(model: Any, path: str) -> Any:
    """Return the value of a field, or of a field's field; None without it."""
    for name in path.split("."):
        model = getattr(model, name, None)
    return model

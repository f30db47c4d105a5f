"""Goodput: new payload over its time.

    goodput = 8 * (new payload after the first segment's) / (last - first data - pauses)

Unit Mbit/s. The first segment's payload is left out because its transmission time is, too. A pause
is a gap of a second or more with nothing outstanding: the application had nothing to send. RFC
2647, 3.17, defines goodput alike, but with the pauses. In a run of the testbed it is the payload
that arrived in the steady window over the flow's own sending time in that window.

Vantage: any. Packets that the capture lost (`unseen`) are missing; data that was sent again before
the tap and lost behind it counts once, whether it arrived or not.
"""

from collections.abc import Sequence
from typing import ClassVar

from typing_extensions import override

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally

TOO_FEW = "fewer than two data segments"


GOODPUT = Definition(
    "goodput", "Mbit/s", "payload that was not seen before, over the time of sending"
)
PAYLOAD = Definition("payload", "bytes", "payload that was not seen before")
DATA_TIME = Definition("data_time", "s", "time from the first data to the last, pauses left out")
PAUSES = Definition(
    "pauses", "s", "total time of gaps of a second or more with nothing outstanding"
)


class Goodput(FromOne):
    """Goodput of each direction, and the pauses left out of it."""

    title = "Goodput"
    picture = "rates"
    per_direction: ClassVar[Sequence[Definition]] = (
        GOODPUT,
        PAYLOAD,
        DATA_TIME,
        PAUSES,
    )

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        active_ns = tally.active_ns(direction)
        return {
            GOODPUT: goodput_bit(direction, tally) / 1e6 if active_ns else TOO_FEW,
            PAYLOAD: tally.new_payload.of(direction),
            DATA_TIME: active_ns / 1e9,
            PAUSES: tally.pause_ns.of(direction) / 1e9,
        }


def goodput_bit(direction: int, tally: Tally) -> float:
    """Compute the goodput in bit/s; NaN if it is undefined."""
    active_ns = tally.active_ns(direction)
    if not active_ns:
        return float("nan")
    payload = tally.new_payload.of(direction) - tally.first_new.of(direction)
    return 8e9 * int(payload) / active_ns

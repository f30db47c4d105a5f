"""Slow start: the part of a transfer in which its flight still doubles.

The flight, bytes sent and not acknowledged, grows from the first data on; each time it reaches 1.5
times its last mark, that time is a new mark. Slow start lasts from the first data to the last mark
before the first segment that is sent again or comes late.

    slow_start_time  = that time
    slow_start_share = its share of the time from the first data to the last, pauses left out

Units: s and 1. A transfer that ends in slow start has a share near 1: its size, and the initial
window, limit it. A flight that an application fills slowly grows, too.

Vantage: any; away from the sender the flight is that beyond the tap. RFC 5681.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

SLOW_START_TIME = Definition(
    "slow_start_time",
    "s",
    "time from the first data to the last doubling of the flight",
    "RFC 5681",
)
SLOW_START_SHARE = Definition(
    "slow_start_share", "1", "its share of the time in which the direction sends", most=1
)


class SlowStart(FromOne):
    """Slow start of each direction."""

    title = "Slow start"
    per_direction = (SLOW_START_TIME, SLOW_START_SHARE)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        found = tally.symptoms(direction)
        if not found.peak:
            return dict.fromkeys(self.per_direction, "no data")
        spent_ns, active_ns = found.doubled_ns - found.begun_ns, tally.active_ns(direction)
        return {
            SLOW_START_TIME: max(spent_ns, 0) / 1e9,
            SLOW_START_SHARE: min(max(spent_ns / active_ns, 0.0), 1.0) if active_ns else 0.0,
        }

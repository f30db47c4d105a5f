"""Retransmissions: segments whose whole payload the tap had seen before.

    retransmitted = retransmissions / all segments

`syns_again` counts the SYN and SYN-ACK packets of the connection that were sent again, in both
directions: its handshake, and so its transfer, waited for a timer of a second or more.

Unit 1; probes (keep-alives) and copies are no retransmissions. Payload that fills a hole is a
separate metric (`late_data`): the tap cannot distinguish loss before it from reordering.

Vantage: near the data's sender, where every segment that is sent again passes twice.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.tracking import Kind

RETRANSMISSIONS = Definition("retransmissions", "1", "segments whose whole payload had been seen")
RETRANSMITTED = Definition("retransmitted", "1", "retransmissions over all segments", most=1)
SYNS_AGAIN = Definition(
    "syns_again", "1", "SYN and SYN-ACK packets of the connection that were sent again"
)
PROBES = Definition("probes", "1", "keep-alives and window probes")


class Retransmissions(FromOne):
    """Retransmitted segments of each direction, and their share."""

    title = "Retransmissions"
    vantage = "near the data's sender"
    per_direction = (RETRANSMISSIONS, RETRANSMITTED, PROBES, SYNS_AGAIN)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        again, all_of_them = tally.count(direction, Kind.RETRANSMISSION), tally.segments(direction)
        return {
            RETRANSMISSIONS: again,
            RETRANSMITTED: again / all_of_them if all_of_them else "no data",
            PROBES: tally.count(direction, Kind.PROBE),
            SYNS_AGAIN: sum(
                max(int(tally.syns.value_of(each)) - 1, 0) for each in (direction, direction ^ 1)
            ),
        }

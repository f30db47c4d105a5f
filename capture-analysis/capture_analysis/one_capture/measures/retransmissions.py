"""Retransmissions: payload that the tap had seen before in full.

    retransmitted = such segments / all segments

Unit 1; probes (keep-alives) and copies are no retransmissions. Payload that fills a hole is
counted apart (`late_data`): the tap cannot tell what was lost before it from what was reordered.

Vantage: near the data's sender, where all that is sent again is seen twice.
"""

from collections.abc import Sequence
from typing import ClassVar

from capture_analysis.one_capture.facts import Facts
from capture_analysis.one_capture.measure import Measure, Quantity, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.tracking import Kind


class Retransmissions(Measure):
    """See the module."""

    title = "Retransmissions"
    vantage = "near the data's sender"
    per_direction: ClassVar[Sequence[Quantity]] = (
        Quantity("retransmissions", "1", "segments all of whose payload had been seen"),
        Quantity("retransmitted", "1", "their share of all segments"),
        Quantity("probes", "1", "keep-alives and window probes"),
    )

    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        """See the class."""
        del facts
        again, all_of_them = tally.count(direction, Kind.RETRANSMISSION), tally.segments(direction)
        return {
            "retransmissions": again,
            "retransmitted": again / all_of_them if all_of_them else "no data",
            "probes": tally.count(direction, Kind.PROBE),
        }

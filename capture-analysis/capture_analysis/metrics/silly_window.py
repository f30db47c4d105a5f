"""Silly windows: small segments because the receiver announces less than a segment.

    silly_segments = new segments that are smaller than the largest, and end at the edge of a window
                     that is smaller than a segment

A receiver should announce 0 rather than a little (RFC 9293, 3.8.6.2); one that reads byte by byte
and announces each byte makes the sender send crumbs, with 40 bytes of headers each.

Unit 1. Vantage: any with the handshake, which has the scale of windows.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.metrics.transfer_limits import NO_SCALE_SEEN
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

SILLY_SEGMENTS = Definition(
    "silly_segments", "1", "segments made small by a window of less than a segment", "RFC 813"
)


class SillyWindow(FromOne):
    """Silly windows of each direction."""

    title = "Silly windows"
    per_direction = (SILLY_SEGMENTS,)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        if facts.window_shift[direction] < 0:
            return {SILLY_SEGMENTS: NO_SCALE_SEEN}
        return {SILLY_SEGMENTS: tally.symptoms(direction).silly}

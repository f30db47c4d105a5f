"""Late data: payload that fills a hole.

It lies below the highest byte seen, but was not seen before.

    late = late segments / all segments

Unit 1. Late data was either reordered, or lost before the tap and sent again.

Vantage: any. Near the data's sender late data was reordered by the sending host; near the receiver
it also shows losses on the path.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.tracking import Kind

LATE_SEGMENTS = Definition("late_segments", "1", "segments that fill a hole in the payload seen")
LATE = Definition("late", "1", "late segments over all segments", most=1)


class LateData(FromOne):
    """Late segments of each direction, and their share."""

    title = "Late data"
    per_direction = (LATE_SEGMENTS, LATE)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        late, all_of_them = tally.count(direction, Kind.LATE_DATA), tally.segments(direction)
        return {LATE_SEGMENTS: late, LATE: late / all_of_them if all_of_them else "no data"}

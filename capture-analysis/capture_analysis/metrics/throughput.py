"""Throughput: captured bytes of data frames over their time.

    throughput = 8 * (data frames' bytes) / (last - first data)

Unit Mbit/s; frames as captured, in a run as they are on the link; headers, retransmissions and
pauses included, copies (captured twice) left out. A segment has at most the announced MSS, or 9216
bytes if none was seen: packets with more were merged by an offload.

Vantage: any; the throughput is that at the tap.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.metrics.goodput import TOO_FEW
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

THROUGHPUT = Definition("throughput", "Mbit/s", "bytes of data packets over their time")
SEGMENTS_MERGED = Definition(
    "segments_merged", "segments", "packets with more payload than a segment can have (offload)"
)
SEGMENTS = Definition("segments", "segments", "packets with payload, probes and copies left out")


class Throughput(FromOne):
    """Throughput of each direction's data frames."""

    title = "Throughput"
    picture = "rates"
    per_direction = (THROUGHPUT, SEGMENTS, SEGMENTS_MERGED)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        life_ns = tally.life_ns(direction)
        sent = tally.data_frame_bytes.value_of(direction)
        return {
            THROUGHPUT: 8e3 * sent / life_ns if life_ns else TOO_FEW,
            SEGMENTS: tally.segments(direction),
            SEGMENTS_MERGED: tally.merged.value_of(direction),
        }

"""Throughput: captured bytes of data frames over the time that they took.

    throughput = 8 * (data frames' bytes) / (last - first data - pauses)

Unit Mbit/s; headers and everything sent again included, copies (captured twice) left out. Pauses
are those of goodput.

Vantage: any; the throughput is that at the tap.
"""

from collections.abc import Sequence
from typing import ClassVar

from capture_analysis.one_capture.facts import Facts
from capture_analysis.one_capture.measure import Measure, Quantity, Values
from capture_analysis.one_capture.measures.goodput import TOO_FEW
from capture_analysis.one_capture.tally import Tally


class Throughput(Measure):
    """Throughput of each direction's data frames."""

    title = "Throughput"
    picture = "rates"
    per_direction: ClassVar[Sequence[Quantity]] = (
        Quantity("throughput", "Mbit/s", "bytes of data frames over the time data took"),
        Quantity("segments", "1", "packets with payload, probes and copies left out"),
    )

    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        """Return the quantities of one direction, by name."""
        del facts
        active_ns = tally.active_ns(direction)
        sent = tally.data_frame_bytes.of(direction)
        return {
            "throughput": 8e3 * sent / active_ns if active_ns else TOO_FEW,
            "segments": tally.segments(direction),
        }

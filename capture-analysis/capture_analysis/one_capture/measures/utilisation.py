"""Utilisation: what a connection puts on the bottleneck of its data, over what that could carry.

    utilisation = 8 * (bytes of all its frames that way) / (rate * time of data, pauses left out)
    efficiency  = goodput / (rate * payload of a full segment / its frame)

Unit 1. Frames as captured. Efficiency is 1 for a connection alone on a link that it keeps full of
data (Kalampoukas, Varma, Ramakrishnan 1998: 2/3 for two with adequate windows, one each way).

Vantage: any. As good as the rate is: see its source and confidence. Where connections share the
bottleneck each has its share.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from capture_analysis.one_capture.facts import Facts
from capture_analysis.one_capture.measure import Measure, Quantity, Values
from capture_analysis.one_capture.measures.goodput import TOO_FEW, goodput_bit
from capture_analysis.one_capture.tally import Tally

NO_RATE = "no rate for the data's bottleneck"


class Utilisation(Measure):
    """See the module."""

    title = "Utilisation and efficiency"
    picture = "rates"
    per_direction: ClassVar[Sequence[Quantity]] = (
        Quantity("utilisation", "1", "the connection's frames that way over what the link carries"),
        Quantity("efficiency", "1", "goodput over that of full segments back to back"),
    )

    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        """See the class."""
        rate_bit, active_ns = float(facts.rate_bit[direction]), tally.active_ns(direction)
        if not active_ns or np.isnan(rate_bit):
            why = NO_RATE if active_ns else TOO_FEW
            return {"utilisation": why, "efficiency": why}
        # The ACKs that this half sends are those for the opposite direction's data.
        sent = tally.data_frame_bytes.of(direction) + tally.ack_frame_bytes.of(direction ^ 1)
        segment, frame = facts.segment_bytes[direction], facts.segment_frame_bytes[direction]
        return {
            "utilisation": 8e9 * sent / (rate_bit * active_ns),
            "efficiency": goodput_bit(direction, tally) * int(frame) / (rate_bit * int(segment)),
        }

"""Utilisation: the share of a bottleneck that a connection uses.

The connection's bytes on the bottleneck of its data, over what the link can carry.

    utilisation = 8 * (bytes of all its frames in that direction) / (rate * time of data)
    efficiency  = goodput / (rate * payload of a full segment / its frame)

Unit 1. Frames as captured; pauses are left out of the time. Efficiency is 1 for a connection alone
on a link that it keeps full of data (Kalampoukas, Varma, Ramakrishnan 1998: 2/3 for two with
adequate windows, one in each direction).

Vantage: any. No better than the rate is: see its source and confidence. Connections that share the
bottleneck divide its utilisation among them.
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
    """Utilisation of the data's bottleneck, and efficiency."""

    title = "Utilisation and efficiency"
    picture = "rates"
    per_direction: ClassVar[Sequence[Quantity]] = (
        Quantity("utilisation", "1", "the connection's frames that way over what the link carries"),
        Quantity("efficiency", "1", "goodput over that of full segments back to back"),
    )

    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        """Return the quantities of one direction, by name."""
        rate_bit, active_ns = float(facts.rate_bit[direction]), tally.active_ns(direction)
        if not active_ns or np.isnan(rate_bit):
            why = NO_RATE if active_ns else TOO_FEW
            return {"utilisation": why, "efficiency": why}
        # This half's ACKs acknowledge the data of the opposite direction.
        sent = tally.data_frame_bytes.of(direction) + tally.ack_frame_bytes.of(direction ^ 1)
        segment, frame = facts.segment_bytes[direction], facts.segment_frame_bytes[direction]
        return {
            "utilisation": 8e9 * sent / (rate_bit * active_ns),
            "efficiency": goodput_bit(direction, tally) * int(frame) / (rate_bit * int(segment)),
        }

"""Find the gaps between successive ACKs at both taps."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from capture_analysis.ack_compression import COMPRESSED_BELOW
from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.facts.running_totals import Previous
from capture_analysis.two_captures.packets_between import View


@dataclass(frozen=True)
class AckGaps:
    """A row for each row of `Crossings.acks`; columns of shape (n,).

    Attributes:
        sent_ns, arrived_ns: time since the ACK before, at the first and the second tap; -1 for a
            direction's first.
        acked_bytes: bytes acknowledged beyond the ACK before; 0 for a direction's first.
    """

    sent_ns: IntArray
    arrived_ns: IntArray
    acked_bytes: IntArray

    @cached_property
    def compressed(self) -> BoolArray:
        """Shape (n,): True if a gap shrank to less than 0.75 of its length when sent."""
        arrived_ns = self.arrived_ns
        return (arrived_ns >= 0) & (arrived_ns < COMPRESSED_BELOW * self.sent_ns)


class AckGapFinder:
    """Computes the gaps of ACKs that come block by block."""

    def __init__(self) -> None:
        # Times and acknowledgement number of each direction's last ACK.
        self._sent, self._arrived, self._ack = Previous(), Previous(), Previous()

    def gaps(self, acks: View) -> AckGaps:
        """Take the next ACKs; return their gaps."""
        where = acks.directions, acks.starts
        sent, arrived, ack = acks["first_ns"], acks["second_ns"], acks["ack"]
        before = self._sent.take_previous(*where, sent)
        known = before != -1
        acked = (ack - self._ack.take_previous(*where, ack)).astype(
            np.int32
        )  # ACK numbers wrap modulo 2^32
        return AckGaps(
            np.where(known, sent - before, -1),
            np.where(known, arrived - self._arrived.take_previous(*where, arrived), -1),
            np.maximum(acked, 0) * known.astype(np.int64),
        )

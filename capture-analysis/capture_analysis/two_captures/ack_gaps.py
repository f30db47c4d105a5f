"""From one ACK to the next of its direction: the time at both taps, and what it acknowledges."""

from dataclasses import dataclass

import numpy as np

from capture_analysis.columns import IntArray
from capture_analysis.one_capture.lanes import Previous
from capture_analysis.two_captures.crossings import View


@dataclass(frozen=True)
class AckGaps:
    """Columns of shape (n,), as `Crossings.acks`.

    Attributes:
        sent_ns, arrived_ns: since the ACK before, at the first and the second tap; -1 for a
            direction's first.
        acked_bytes: beyond what the ACK before acknowledges; 0 for a direction's first.
    """

    sent_ns: IntArray
    arrived_ns: IntArray
    acked_bytes: IntArray


class AckGapFinder:
    """Gaps of ACKs that come block by block."""

    def __init__(self) -> None:
        # The last ACK of each direction.
        self._sent, self._arrived, self._ack = Previous(), Previous(), Previous()

    def gaps(self, acks: View) -> AckGaps:
        """Take the next ACKs."""
        where = acks.directions, acks.starts
        sent, arrived, ack = acks["first_ns"], acks["second_ns"], acks["ack"]
        before = self._sent.of(*where, sent)
        known = before != -1
        acked = (ack - self._ack.of(*where, ack)).astype(np.int32)  # modulo 2^32, as they wrap
        return AckGaps(
            np.where(known, sent - before, -1),
            np.where(known, arrived - self._arrived.of(*where, arrived), -1),
            np.maximum(acked, 0) * known.astype(np.int64),
        )

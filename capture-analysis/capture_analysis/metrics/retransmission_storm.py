"""Retransmission storms and tail losses.

    again_in_a_row = most segments sent again without an ACK of anything new between them
    tail_losses    = repairs that begin with the last segment that was sent: no later segment makes
                     the receiver report the loss, so that a timer or a probe must find it

Unit 1. A storm sends many segments again although few are missing: its sender lacks SACK, or the
ACKs are lost or late. `retransmissions_timeout` and `retransmissions_fast` (repairs) have the
reasons for each.

Vantage: near the data's sender, where each segment passes twice. RFC 8985.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import NEAR, Facts
from capture_analysis.metrics.transfer_limits import NOT_NEAR
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

AGAIN_IN_A_ROW = Definition(
    "again_in_a_row", "1", "most segments sent again without progress between them"
)
TAIL_LOSSES = Definition(
    "tail_losses", "1", "repairs that begin with the last segment sent", "RFC 8985"
)


class RetransmissionStorm(FromOne):
    """Retransmission storms and tail losses of each direction."""

    title = "Retransmission storms and tail losses"
    vantage = "near the data's sender"
    per_direction = (AGAIN_IN_A_ROW, TAIL_LOSSES)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        if not facts.tap_at[direction] <= NEAR:
            return dict.fromkeys(self.per_direction, NOT_NEAR)
        found = tally.symptoms(direction)
        return {AGAIN_IN_A_ROW: found.run_most, TAIL_LOSSES: found.tails}

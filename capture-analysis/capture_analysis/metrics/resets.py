"""Resets: who ended a connection with RST, after what.

    resets_sent   = RSTs of the data's sender
    reset_after   = time from the last packet before the first of them
    reset_untaken = payload of the other end, in flight, that the RST's sender never acknowledged

Units: 1, s and bytes. An RST after a silence is a timer's; one at once after data answers data that
nothing expects; one with payload untaken is an application that closed before it read all.

Vantage: any. RFC 9293, 3.5.2.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

RESETS_SENT = Definition("resets_sent", "1", "RSTs of the data's sender", "RFC 9293")
RESET_AFTER = Definition(
    "reset_after", "s", "time from the last packet before the first of these RSTs"
)
RESET_UNTAKEN = Definition(
    "reset_untaken", "bytes", "the other end's payload that the RST's sender did not acknowledge"
)


class Resets(FromOne):
    """Resets of each direction."""

    title = "Resets"
    per_direction = (RESETS_SENT, RESET_AFTER, RESET_UNTAKEN)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        found = tally.symptoms(direction)
        if not found.resets:
            return {RESETS_SENT: 0} | dict.fromkeys(self.per_direction[1:], "it sent no RST")
        return {
            RESETS_SENT: found.resets,
            RESET_AFTER: found.reset_ns / 1e9,
            RESET_UNTAKEN: found.reset_bytes,
        }

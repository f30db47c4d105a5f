"""Holes of the capture: payload that was acknowledged and is not in it.

    unseen = unseen bytes / (new payload + unseen bytes)

An ACK of bytes that the tap has not seen proves that they passed elsewhere or that the capture
missed them: it dropped packets, or saw one of several paths. A hole is an ACK that is the first to
acknowledge such bytes. Bytes that are captured only after their ACK count, too: captures of an
interface with several queues have such an order. Answers of an old connection to a SYN do not
count, and only the last 64 holes of a half are known. Wireshark's "ACKed unseen segment" is an ACK
beyond the highest byte seen; here the bytes before that count as well.

Self-check: if no packet is missing, all three metrics are 0. Otherwise goodput, shares of links,
rates, retransmissions, losses and limits lack the missing packets, too.

Vantage: any.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

UNSEEN_BYTES = Definition(
    "unseen_bytes", "bytes", "payload that was acknowledged and is not in the capture"
)
CAPTURE_HOLES = Definition(
    "capture_holes",
    "1",
    "ACKs that are the first to acknowledge payload which is not in the capture",
)
UNSEEN = Definition("unseen", "1", "share of the payload that is not in the capture", most=1)


class CaptureHoles(FromOne):
    """Payload of each direction that ACKs prove and the capture lacks."""

    title = "Holes of the capture"
    per_direction = (UNSEEN_BYTES, CAPTURE_HOLES, UNSEEN)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        unseen, holes = (int(n) for n in tally.unseen.value_of(direction))
        payload = unseen + int(tally.new_payload.value_of(direction))
        return {
            UNSEEN_BYTES: unseen,
            CAPTURE_HOLES: holes,
            UNSEEN: unseen / payload if payload else "no data",
        }

"""The evidence that numbers need: why a capture cannot tell, and what would help.

A number on ACKs' compression needs the evidence of the verdict; one that follows from the rate of
the data's bottleneck needs a measured or given rate.
"""

import numpy as np

from capture_analysis.facts.facts import NEAR, Evidence, Facts
from capture_analysis.one_capture import lives
from capture_analysis.one_capture.tally import Tally

LEAST_ACKS = 30
_FULL_SHARE = 0.5  # Share of segments that must be full for the ACKs to be judged

NO_RATE = "no rate for the data's bottleneck"
GUESSED_RATE = (
    "the rate of the data's bottleneck is only a guess: giving it (--rate-mbit), or a capture at "
    "both ends, would tell"
)
NO_ACK_RATE = "no rate for the ACKs' bottleneck"
GUESSED_ACK_RATE = (
    "the rate of the ACKs' bottleneck is only a guess: giving it (--ack-rate-mbit) would tell"
)
NO_PLACE = (
    "the capture's place on the path is not known: a capture at the data's sender, with the "
    "handshake, would tell"
)
ONE_SIDED = "the capture has packets of one direction only: the other's would tell"
ONE_TIME = "all its packets have one time"
AT_RECEIVER = (
    "the capture was made near the data's receiver, which the ACKs have just left: a capture "
    "at the data's sender would tell"
)
TOO_FEW_ACKS = f"fewer than {LEAST_ACKS} ACKs of new data: a longer transfer would tell"
MERGED = (
    "segments are larger than can be sent, merged by an offload: a capture with offloads off "
    "(ethtool -K INTERFACE tso off gso off gro off lro off), or on another machine, would tell"
)
SMALL = "most segments are small, and no pace of data can be seen: a bulk transfer would tell"
COARSE_CLOCK = (
    "the capture's clock is coarser than half a segment's transmission time: one with a finer "
    "clock would tell"
)


def missing_place(direction: int, tally: Tally) -> str:
    """Return why the capture's place on the path of a direction is not known."""
    life = tally.lives.value_of(direction >> 1)
    if lives.one_sided(life[lives.SEEN]):
        return ONE_SIDED
    return NO_PLACE if life[lives.TIME] else ONE_TIME


def missing_evidence(direction: int, tally: Tally, facts: Facts) -> str:
    """Return the reason why a direction's ACKs cannot be judged; "" if they can."""
    at = facts.tap_at[direction]
    segments, full = tally.segments(direction), tally.full_segments.value_of(direction)
    reasons = {
        MERGED: facts.merged[direction],
        missing_place(direction, tally): np.isnan(at),
        AT_RECEIVER: at >= 1 - NEAR,
        TOO_FEW_ACKS: tally.spaced_acks.value_of(direction) < LEAST_ACKS,
        SMALL: full < _FULL_SHARE * segments or facts.small[direction],
        COARSE_CLOCK: 2 * facts.clock_ns[direction] > facts.data_service_ns[direction],
    }
    return next((why for why, holds in reasons.items() if holds), "")


def missing_rate(direction: int, facts: Facts) -> str:
    """Return why the rate of the bottleneck of a direction's data is no evidence; "" if it is."""
    evidence = facts.rate_evidence[direction]
    if evidence >= Evidence.MEASURED:
        return ""
    return GUESSED_RATE if evidence else NO_RATE


def missing_ack_rate(direction: int, facts: Facts) -> str:
    """Return why the rate of the bottleneck of a direction's ACKs is no evidence; "" if it is."""
    evidence = facts.rate_evidence[direction ^ 1]
    if evidence >= Evidence.MEASURED:
        return ""
    return GUESSED_ACK_RATE if evidence else NO_ACK_RATE

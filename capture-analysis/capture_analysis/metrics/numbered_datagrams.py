"""Numbered datagrams: loss, order and jitter of RTP, and of load generators, by their numbers.

    numbered         = packets with a number: of RTP, or a count of 32 bits at byte 0 of the payload
                       (iperf 2) or at byte 8 (iperf 3)
    numbered_streams = streams: the sources (SSRC) of RTP; 1 for a count
    numbered_lost    = numbers from the first to the highest, less the packets that came; one that
                       came twice hides a loss (RFC 3550, A.3)
    numbered_lost_share = those over all of these numbers
    numbered_late    = packets whose number is not above the highest: out of order, or twice
    rtp_clock        = clock of the time stamps, by their pace
    rtp_jitter       = jitter at the end: J += (|D| - J) / 16, D being the difference of a packet's
                       transit time to that of the one before (RFC 3550, A.8)
    rtp_jitter_most  = the largest J

Of several sources the jitter is that of the source with most of it.

Evidence: ten packets or more, and nine tenths of their numbers are within 100 of the highest
before;
for the jitter a pace of time stamps within a tenth of 8, 16, 24, 44.1, 48 or 90 kHz. A count
also has nine tenths of its numbers above the highest before. Anything may stand at these bytes:
random ones pass with a chance of one in 10^20.

Limits: a number that jumps by more than 3,000 begins anew. Losses behind the tap are not seen. Four
sources of a direction are kept apart. A sender that sends frames of video in bursts has jitter
without a network.

Vantage: near the receiver for its losses and jitter. Units: 1, Hz, ms.
"""

from collections.abc import Sequence
from typing import Any

from capture_analysis.definition import Definition
from capture_analysis.one_capture.from_one import FromOne, Value, Values
from capture_analysis.overriding import override
from capture_analysis.reading.datagrams import CLOCKS_HZ, RTP_STREAMS

LEAST_PACKETS, LEAST_NEAR, CLOCK_TOLERANCE = 10, 0.9, 0.1
NO_NUMBERS = "no numbers of RTP or of a load generator in ten packets or more"
NO_RTP = "no RTP"
NO_CLOCK = "the pace of the time stamps is not that of a clock of RTP"

NUMBERED = Definition("numbered", "1", "packets with a number")
STREAMS = Definition("numbered_streams", "1", "sources of RTP, or 1 for another count")
LOST = Definition("numbered_lost", "1", "numbers that did not come", "RFC 3550, A.3")
LOST_SHARE = Definition(
    "numbered_lost_share", "1", "share of the numbers that did not come", most=1
)
LATE = Definition("numbered_late", "1", "packets out of order, or twice")
CLOCK = Definition("rtp_clock", "Hz", "clock of RTP's time stamps")
JITTER = Definition("rtp_jitter", "ms", "interarrival jitter at the end", "RFC 3550, A.8")
JITTER_MOST = Definition("rtp_jitter_most", "ms", "largest interarrival jitter", "RFC 3550, A.8")


def numbered_streams(mine: Any) -> tuple[list[Any], bool]:
    """Return the streams of a direction that have numbers, and whether they are of RTP."""
    packets, near = mine["streams"]["packets"], mine["streams"]["near"]
    sure = (packets >= LEAST_PACKETS) & (near >= LEAST_NEAR * (packets - 1))
    if mine["version"]:
        sure[:] = False  # QUIC's bytes are encrypted
    rtp = [each for each in mine["streams"][:RTP_STREAMS][sure[:RTP_STREAMS]] if each["ticks"]]
    # A number that stands still, or goes to and fro, is no count.
    sure &= mine["streams"]["late"] <= (1 - LEAST_NEAR) * packets
    others = mine["streams"][RTP_STREAMS:][sure[RTP_STREAMS:]]
    return (rtp, True) if rtp else (list(others[:1]), False)


class NumberedDatagrams(FromOne):
    """The streams of each direction."""

    title = "Numbered datagrams"
    vantage = "near the receiver"
    per_datagrams = (*(NUMBERED, STREAMS, LOST, LOST_SHARE, LATE, CLOCK, JITTER, JITTER_MOST),)

    @override
    def of_datagrams(self, mine: Any, other: Any) -> Values:
        streams, rtp = numbered_streams(mine)
        if not streams:
            return dict.fromkeys(self.per_datagrams, NO_NUMBERS)
        expected = sum(int(each["expected"]) for each in streams)
        arrived = sum(int(each["packets"]) for each in streams)
        late = sum(int(each["late"]) for each in streams)
        lost = max(expected - arrived, 0)
        jitters = sorted(found for each in streams if (found := _jitter(each))) if rtp else []
        clock, jitter, most = _worst(jitters) if jitters else [NO_CLOCK if rtp else NO_RTP] * 3
        return {
            NUMBERED: arrived,
            STREAMS: len(streams),
            LOST: lost,
            LOST_SHARE: lost / expected,
            LATE: late,
            CLOCK: clock,
            JITTER: jitter,
            JITTER_MOST: most,
        }


def _worst(jitters: Sequence[tuple[float, float, int]]) -> list[Value]:
    jitter, most, clock = jitters[-1]
    return [clock, jitter, most]


def _jitter(stream: Any) -> tuple[float, float, int] | None:
    """Return jitter and its largest value, ms, and the clock; None without one."""
    span_s = (int(stream["paced_ns"]) - int(stream["first_ns"])) / 1e9
    if span_s <= 0:
        return None
    pace = int(stream["paced"]) / span_s
    at = min(range(len(CLOCKS_HZ)), key=lambda clock: abs(CLOCKS_HZ[clock] - pace))
    if abs(CLOCKS_HZ[at] - pace) > CLOCK_TOLERANCE * CLOCKS_HZ[at]:
        return None
    jitter, most = (float(stream[name][at]) / 1e6 for name in ("jitter_ns", "jitter_most_ns"))
    return jitter, most, CLOCKS_HZ[at]

"""Path MTU: segments of a size that never passes, and segments smaller than Ethernet allows.

A black hole drops large packets without a word: the same segment is sent three times or more, no
segment of its size was ever acknowledged, and smaller ones were. Every path passes packets of 576
bytes, and data after a minute of silence may find a dead connection (`idle_death`). A host that
hears of the smaller MTU (ICMP), or probes for it (RFC 4821), sends smaller segments instead.

    mtu_black_hole = size of the segments that never pass, bytes of payload; 0 if there are none
    mtu_repeats    = most times that one segment was sent again without progress
    mss_clamped    = bytes by which the MSS that the receiver announced is below that of Ethernet,
                     1460 (IPv4) or 1440 (IPv6)

An MSS below Ethernet's is that of a tunnel at the receiver, or a router on the path changed it in
the SYN (clamping); one capture cannot distinguish these, two captures show it in their SYNs.

Vantage: near the data's sender; beyond the black hole nothing is seen. RFC 1191, 2923, 8899.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.metrics.keep_alive import IDLE_NS
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

NO_MSS = "no handshake with an MSS"
_REPEATS, _ETHERNET = 3, 1440
# Payload of 576 bytes (RFC 1122, 3.3.3) behind headers with time stamps.
_ALWAYS_PASSES = 524

MTU_BLACK_HOLE = Definition(
    "mtu_black_hole",
    "bytes",
    "payload of segments that never pass while smaller ones do; 0: none",
    "RFC 2923",
)
MTU_REPEATS = Definition(
    "mtu_repeats", "1", "most times that one segment was sent again without progress"
)
MSS_CLAMPED = Definition(
    "mss_clamped", "bytes", "bytes that the receiver's MSS lacks to Ethernet's"
)


class PathMtu(FromOne):
    """Path MTU of each direction."""

    title = "Path MTU"
    per_direction = (MTU_BLACK_HOLE, MTU_REPEATS, MSS_CLAMPED)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        found = tally.symptoms(direction)
        mss = int(facts.mss_bytes[direction])
        hole = found.repeats_most >= _REPEATS and found.repeated > max(found.passed, _ALWAYS_PASSES)
        hole &= found.idle_ns < IDLE_NS
        return {
            MTU_BLACK_HOLE: found.repeated if hole and found.acked > 1 else 0,
            MTU_REPEATS: found.repeats_most,
            MSS_CLAMPED: max(_ETHERNET - mss, 0) if mss else NO_MSS,
        }

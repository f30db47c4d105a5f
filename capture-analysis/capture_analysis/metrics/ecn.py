"""ECN: marks instead of losses, and what their receiver tells of them.

IP's field of ECN has two bits: a sender that takes marks sets ECT(0), or ECT(1) if it wants the
frequent marks of L4S; a queue that builds sets CE. The receiver tells the sender: classic ECN
repeats ECE in all its ACKs until it sees CWR; AccECN counts packets with CE in three bits.

    ecn_capable   = segments with ECT(0), ECT(1) or CE, over all
    ecn_l4s       = segments with ECT(1), over all; with CE the other bit is lost
    ecn_marked    = segments with CE
    ecn_marked_share = these over the capable ones
    ecn_echoed    = ACKs with ECE, of classic ECN
    ecn_reduced   = segments with CWR, of classic ECN: reductions of the window
    ecn_counted   = packets with CE that AccECN's counter told; undefined without AccECN
    ecn_options   = ACKs with AccECN's option (kind 172 or 174), which counts bytes by mark

Units 1. The counter wraps at 8: more marks between two ACKs of the capture are not seen. The bytes
in the options are not read.

Vantage: any for the echoes. Marks are set on the path: near the data's sender few segments have
CE yet, and near the receiver all of them. RFC 3168, RFC 9331, RFC 9768.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

NO_CAPABLE = "no segment can be marked"
NO_ACCURATE = "no ACK with AccECN's counter, or no handshake that agrees on it"

ECN_CAPABLE = Definition("ecn_capable", "1", "share of segments that can be marked", most=1)
ECN_L4S = Definition("ecn_l4s", "1", "share of segments with ECT(1)", "RFC 9331", most=1)
ECN_MARKED = Definition("ecn_marked", "1", "segments with CE", "RFC 3168")
ECN_MARKED_SHARE = Definition(
    "ecn_marked_share", "1", "segments with CE over those that can be marked", most=1
)
ECN_ECHOED = Definition("ecn_echoed", "1", "ACKs with ECE", "RFC 3168")
ECN_REDUCED = Definition("ecn_reduced", "1", "segments with CWR", "RFC 3168")
ECN_COUNTED = Definition("ecn_counted", "1", "packets with CE that AccECN told", "RFC 9768")

ECN_OPTIONS = Definition("ecn_options", "1", "ACKs with AccECN's option", "RFC 9768")


class Ecn(FromOne):
    """The marks of each direction's segments, and their echoes."""

    title = "ECN"
    picture = "marks"
    per_direction = (
        ECN_CAPABLE,
        ECN_L4S,
        ECN_MARKED,
        ECN_MARKED_SHARE,
        ECN_ECHOED,
        ECN_REDUCED,
        ECN_COUNTED,
        ECN_OPTIONS,
    )

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        found = tally.symptoms(direction)
        capable = found.ect_0 + found.ect_1 + found.marked
        whole = max(capable + found.not_capable, 1)
        return {
            ECN_CAPABLE: capable / whole,
            ECN_L4S: found.ect_1 / whole,
            ECN_MARKED: found.marked,
            ECN_MARKED_SHARE: found.marked / capable if capable else NO_CAPABLE,
            ECN_ECHOED: found.echoes,
            ECN_REDUCED: found.reduced,
            ECN_COUNTED: found.told if found.counter else NO_ACCURATE,
            ECN_OPTIONS: found.byte_counters,
        }

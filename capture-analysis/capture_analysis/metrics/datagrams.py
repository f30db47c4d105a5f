"""Datagrams: packets, sizes, rate and gaps of each direction of a UDP flow.

    udp_packets      = packets
    udp_payload      = their payload, without UDP's header
    udp_rate         = payload without the first packet's size on average, over the time from the
                       first packet to the last
    udp_packet_rate  = packets after the first over that time
    udp_size_mean    = mean payload of a packet
    udp_size_most    = the largest
    udp_gap          = the longest time from one packet to the next
    udp_gap_begin    = its begin, from the direction's first packet
    udp_l4s          = share of packets with ECT(1), as L4S sends (RFC 9331)
    udp_marked       = packets with CE

Evidence: two packets for a rate. Units: bytes, Mbit/s, s. Later fragments of a packet count in its
payload, by UDP's flow, only as far as IP's length of the first fragment says.

Limits: UDP itself has no numbers and no acknowledgements, so a gap may be a loss, a pause of the
application or a queue. The first 65,536 flows of a capture have rows.

Vantage: any; rates and gaps are those at the tap.
"""

from typing import Any

from capture_analysis.definition import Definition
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.overriding import override

ONE_PACKET = "one packet, or one time"

PACKETS = Definition("udp_packets", "1", "packets of UDP")
PAYLOAD = Definition("udp_payload", "bytes", "payload of UDP")
RATE = Definition("udp_rate", "Mbit/s", "payload over the time from the first packet to the last")
PACKET_RATE = Definition("udp_packet_rate", "1/s", "packets over that time")
SIZE_MEAN = Definition("udp_size_mean", "bytes", "mean payload of a packet")
SIZE_MOST = Definition("udp_size_most", "bytes", "largest payload of a packet")
GAP = Definition("udp_gap", "s", "longest time from one packet to the next")
GAP_BEGIN = Definition("udp_gap_begin", "s", "its begin, from the direction's first packet")
L4S = Definition("udp_l4s", "1", "share of packets with ECT(1)", "RFC 9331", most=1)
MARKED = Definition("udp_marked", "1", "packets with CE", "RFC 3168")


class UdpFlows(FromOne):
    """The packets of each direction, whatever they carry."""

    title = "Datagrams"
    per_datagrams = (
        *(PACKETS, PAYLOAD, RATE, PACKET_RATE, SIZE_MEAN, SIZE_MOST, GAP, GAP_BEGIN, L4S, MARKED),
    )

    @override
    def of_datagrams(self, mine: Any, other: Any) -> Values:
        packets, payload = int(mine["packets"]), int(mine["bytes"])
        span_s, later = (int(mine["last_ns"]) - int(mine["first_ns"])) / 1e9, packets - 1
        known = later > 0 and span_s > 0
        return {
            PACKETS: packets,
            PAYLOAD: payload,
            RATE: 8e-6 * payload * later / packets / span_s if known else ONE_PACKET,
            PACKET_RATE: later / span_s if known else ONE_PACKET,
            SIZE_MEAN: payload / packets,
            SIZE_MOST: int(mine["largest"]),
            GAP: int(mine["gap_ns"]) / 1e9 if known else ONE_PACKET,
            GAP_BEGIN: int(mine["gap_at_ns"] - mine["first_ns"]) / 1e9 if known else ONE_PACKET,
            L4S: int(mine["ecn"][1]) / packets,
            MARKED: int(mine["ecn"][3]),
        }

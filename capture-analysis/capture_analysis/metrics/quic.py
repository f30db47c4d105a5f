"""QUIC: its visible part, which is the handshake's headers, the spin bit, sizes and times.

    quic_version     = the version of the long headers (1; 0x6b3343cf for version 2)
    quic_initial, quic_0rtt, quic_handshake, quic_retry, quic_negotiation, quic_short
                     = packets by kind: Initial, 0-RTT, Handshake, Retry, Version Negotiation, and
                       those with a short header; several may be in one datagram
    quic_id          = bytes of the connection id that this end chose, in its last long header
    quic_connect     = time from the flow's first Initial to this end's first short header
    quic_answer      = time from the other end's first packet to this end's first: the server's is a
                       round trip between tap and server, with its work
    spin_changes     = changes of the spin bit (RFC 9000, 17.4)
    spin_rtt         = mean time from change to change: a round trip, with the ends' waits
    spin_rtt_least   = the shortest

Evidence: a long header of version 1, version 2, a draft of version 1, or a reserved version. For
the spin bit three changes, in at most a quarter of the short headers: an end that does not take
part leaves the bit as it is, or sends random bits (RFC 9312, 4.1).

Limits: QUIC encrypts packet numbers and acknowledgements (RFC 9001): losses, retransmissions, data
in flight and reasons for waiting are in the endpoint's log only (qlog). An application that pauses
makes spin times long; packets that overtake each other make them short. A flow captured without its
handshake cannot be told from other UDP (RFC 9312, 2.1). A connection that moves to other addresses
is another flow. Other versions (RFC 8999) are not read, and a reserved one has no kinds of packets.

Vantage: any: each direction's spin bit gives the whole round trip. Units: 1, bytes, s, ms.
"""

from typing import Any

from capture_analysis.definition import Definition
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.overriding import override
from capture_analysis.reading.datagrams import Quic

_LEAST_CHANGES, _MOST_SHARE = 3, 0.25
NO_QUIC = "no long header of a known version of QUIC"
NO_SPIN = "the spin bit does not spin, or at random: an end does not take part"
NO_CONNECT = "no Initial, or no short header after it"
NO_ANSWER = "this end has the first word, or sent nothing"

VERSION = Definition("quic_version", "1", "version of the long headers", "RFC 8999")
KINDS = tuple(
    Definition(f"quic_{name}", "1", f"{words} packets", "RFC 9000, 17")
    for name, words in (
        ("initial", "Initial"),
        ("0rtt", "0-RTT"),
        ("handshake", "Handshake"),
        ("retry", "Retry"),
        ("negotiation", "Version Negotiation"),
        ("short", "1-RTT"),
    )
)
ID = Definition("quic_id", "bytes", "length of this end's connection id", "RFC 8999")
CONNECT = Definition("quic_connect", "s", "time from the first Initial to the first short header")
ANSWER = Definition(
    "quic_answer", "s", "time from the other end's first packet to the first answer"
)
SPIN_CHANGES = Definition("spin_changes", "1", "changes of the spin bit", "RFC 9000, 17.4")
SPIN_RTT = Definition("spin_rtt", "ms", "mean time from change to change", "RFC 9312, 3.8.2")
SPIN_RTT_LEAST = Definition("spin_rtt_least", "ms", "shortest time from change to change")


class QuicHeaders(FromOne):
    """The headers of each direction."""

    title = "QUIC"
    per_datagrams = (
        *(VERSION, *KINDS, ID, CONNECT, ANSWER, SPIN_CHANGES, SPIN_RTT, SPIN_RTT_LEAST),
    )

    @override
    def of_datagrams(self, mine: Any, other: Any) -> Values:
        if not (mine["version"] or other["version"]):
            return dict.fromkeys(self.per_datagrams, NO_QUIC)
        kinds, edges, spun = mine["quic"].tolist(), int(mine["edges"]), int(mine["spun"])
        spins = edges >= _LEAST_CHANGES and edges <= _MOST_SHARE * kinds[Quic.SHORT] and spun > 0
        begun = min(int(end["first_ns"]) for end in (mine, other) if end["packets"])
        answer_ns = int(mine["first_ns"]) - begun
        asked = mine["quic"][Quic.INITIAL] + other["quic"][Quic.INITIAL] > 0
        shorts = asked and kinds[Quic.SHORT]
        return {
            VERSION: int(mine["version"] or other["version"]),
            **dict(zip(KINDS, kinds, strict=True)),
            ID: int(mine["ids"][1]) if mine["version"] else NO_QUIC,
            CONNECT: (int(mine["short_ns"]) - begun) / 1e9 if shorts else NO_CONNECT,
            ANSWER: answer_ns / 1e9 if answer_ns > 0 else NO_ANSWER,
            SPIN_CHANGES: edges,
            SPIN_RTT: int(mine["spun_ns"]) / spun / 1e6 if spins else NO_SPIN,
            SPIN_RTT_LEAST: int(mine["spun_least_ns"]) / 1e6 if spins else NO_SPIN,
        }

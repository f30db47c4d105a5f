"""TLS: the parts of its handshake, by the headers of records.

    tls_hello  = time from the ClientHello to the ServerHello
    tls_finish = time from that to the client's first encrypted record: its last words of the
                 handshake (TLS 1.3), or its first request (TLS 1.2)
    tls_answer = time from that to the server's next encrypted record

Evidence: a segment that begins with a record of a hello, or with an encrypted record, alone or
behind ChangeCipherSpec. So the capture needs six bytes of the payload: a snap length of 128
(tcpdump -s 128) keeps them.

Limits: a hello in the middle of a segment is not seen. A HelloRetryRequest counts as the
ServerHello. A server of TLS 1.3 may send a ticket before its answer, which then counts as the
answer. TLS that begins inside another protocol (STARTTLS) is read as well.

Units: s, the same in both directions. Vantage: any; near the client tls_hello and tls_answer have
the round trip, near the server tls_finish has it. RFC 8446, 5.1.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture import lives
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

NO_TLS = "no ClientHello at the begin of a segment, or the snap length cuts it"
NOT_REACHED = "the handshake of TLS does not get this far in the capture"

TLS_HELLO = Definition("tls_hello", "s", "time from ClientHello to ServerHello", "RFC 8446")
TLS_FINISH = Definition("tls_finish", "s", "time from it to the client's first encrypted record")
TLS_ANSWER = Definition("tls_answer", "s", "time from that to the server's next encrypted record")


class TlsHandshake(FromOne):
    """The handshake of each connection."""

    title = "TLS handshake"
    per_direction = (TLS_HELLO, TLS_FINISH, TLS_ANSWER)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        life = tally.lives.value_of(direction >> 1)
        if not life[lives.TLS]:
            return dict.fromkeys(self.per_direction, NO_TLS)
        parts = lives.tls_parts(life[None])[0].tolist()
        return {
            each: NOT_REACHED if part < 0 else part / 1e9
            for each, part in zip(self.per_direction, parts, strict=True)
        }

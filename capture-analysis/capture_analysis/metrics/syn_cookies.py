"""SYN cookies: whether a server kept its half-open connection, as far as packets show.

A server under load may answer a SYN with a cookie and keep nothing: its answer is never sent again,
and without time stamps it has no window scale and no SACK (RFC 4987, 3.6).

    syn_cookie = 0 if the server sent its answer to the SYN again by itself: then it kept it

Nothing shows that there was a cookie. An answer with time stamps hides the scale in them; one
without scale may also come from a server that has none, or through a middlebox that removed it. The
server's own count tells (nstat TcpExtSyncookiesSent).

Vantage: any with the handshake. Unit 1, of the server's direction.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture import lives
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.lives import Life
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

NO_ANSWER = "no SYN and no answer to it from this end"
NO_SCALE = (
    "the answer to the SYN has no window scale: a SYN cookie, a middlebox, or an end without it; "
    "the server's count tells (nstat TcpExtSyncookiesSent)"
)
ALIKE = (
    "a SYN cookie with time stamps looks like any answer to a SYN; the server's count tells (nstat "
    "TcpExtSyncookiesSent)"
)

SYN_COOKIE = Definition("syn_cookie", "1", "0: the server kept the connection", "RFC 4987", most=1)


class SynCookies(FromOne):
    """The answer to the SYN of each connection."""

    title = "SYN cookies"
    per_direction = (SYN_COOKIE,)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        seen = int(tally.lives.value_of(direction >> 1)[lives.SEEN])
        both = Life.SYN | Life.ANSWERED
        if not direction & 1 or seen & both != both:
            return {SYN_COOKIE: NO_ANSWER}
        if tally.syns.value_of(direction) > tally.syns.value_of(direction ^ 1):
            return {SYN_COOKIE: 0}
        return {SYN_COOKIE: NO_SCALE if facts.window_shift[direction] == 0 else ALIKE}

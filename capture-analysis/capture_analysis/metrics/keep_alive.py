"""Keep-alives and idle death: probes of a connection at rest, and data that come too late.

A keep-alive repeats the last byte that was acknowledged, or has no payload, while the window is
open; its answer is any packet of the other end. A connection is idle to death if its data after a
silence of a minute or more were sent again twice or more, and nothing acknowledged them: a
firewall or a translator of addresses forgot it, or the other host is gone.

    keepalives            = number of keep-alives
    keepalives_unanswered = most of them without a packet of the other end
    idle_death            = the silence before such data, s; 0 if there is none

Vantage: any with packets of both directions. RFC 9293, 3.8.4.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

IDLE_NS, _AGAIN = 60_000_000_000, 2

KEEPALIVES = Definition("keepalives", "1", "keep-alives of this end", "RFC 9293")
KEEPALIVES_UNANSWERED = Definition(
    "keepalives_unanswered", "1", "most keep-alives in a row without a packet of the other end"
)
IDLE_DEATH = Definition(
    "idle_death", "s", "silence before data that were sent again and never acknowledged; 0: none"
)


class KeepAlive(FromOne):
    """Keep-alives and idle death of each direction."""

    title = "Keep-alives and idle death"
    per_direction = (KEEPALIVES, KEEPALIVES_UNANSWERED, IDLE_DEATH)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        found = tally.symptoms(direction)
        dead = found.run >= _AGAIN and found.idle_ns >= IDLE_NS
        return {
            KEEPALIVES: found.keepalives,
            KEEPALIVES_UNANSWERED: found.unheard_most,
            IDLE_DEATH: found.idle_ns / 1e9 if dead else 0.0,
        }

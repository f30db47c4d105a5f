"""Stalls: times in which a connection makes no progress, with their begin and their cause.

Progress is new data, or an ACK of some. A wait of 0.2 s and of three round trips of the handshake
or more is a stall (of 0.5 s if an ACK is awaited, which a receiver may delay); the longest gap in
it names its cause. A wait for the data's receiver to ask is no stall of its sender.

    stall_longest = the longest stall
    stall_begin   = time from the direction's first data to its begin; below 0 before them
    stall_cause   = 0 the sender's application, 1 the handshake, 2 data sent again, 3 a window of 0,
                    4 the network: an ACK or further data did not come
    stalled       = sum of all stalls

Units: s and 1. The table of connections (`flows --sort stall`) has the same for whole connections.

Vantage: any; at the receiver data that wait in the network look like the sender's application.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture import lives
from capture_analysis.one_capture.evidence import ONE_SIDED
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

NO_STALL = "no stall"

STALL_LONGEST = Definition("stall_longest", "s", "longest time without progress")
STALL_BEGIN = Definition(
    "stall_begin", "s", "its begin, from the direction's first data", least=-float("inf")
)
STALL_CAUSE = Definition("stall_cause", "1", "the number of its cause", most=4)
STALLED = Definition("stalled", "s", "sum of all stalls")


class Stalls(FromOne):
    """The stalls of each direction."""

    title = "Stalls"
    per_direction = (STALL_LONGEST, STALL_BEGIN, STALL_CAUSE, STALLED)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        life = tally.lives.value_of(direction >> 1)
        # The application of this half, then the causes that both halves share.
        causes = [direction & 1, *range(2, lives.WAITS)]
        columns = (lives.STALLED, lives.LONGEST, lives.BEGUN)
        sums, longest, begun_ns = (life[each][causes] for each in columns)
        cause = int(longest.argmax())
        if not longest[cause]:
            return {STALL_LONGEST: 0.0, STALLED: 0.0, STALL_BEGIN: NO_STALL, STALL_CAUSE: NO_STALL}
        return {
            STALL_LONGEST: longest[cause] / 1e9,
            STALL_BEGIN: (int(begun_ns[cause]) - int(tally.first_ns.value_of(direction))) / 1e9,
            STALL_CAUSE: ONE_SIDED if lives.one_sided(life[lives.SEEN]) else cause,
            STALLED: int(sums.sum()) / 1e9,
        }

"""Window scaling: the largest window that the handshake allows, and its rate.

Windows are scaled only if both ends offer it in their SYNs (RFC 7323). An end without it, a
middlebox that removes the option, or a server that answers with a SYN cookie and no time stamps
leaves every window at 65,535 bytes: at a round trip of 100 ms that is 5.2 Mbit/s at most.

    window_scale      = the scale, as a power of two; 0 if one end did not offer any
    window_most       = 65,535 bytes times it
    window_most_rate  = what that carries in a round trip of the handshake, Mbit/s

Vantage: any with the handshake and its options.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.metrics.transfer_limits import NO_SCALE_SEEN
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

WINDOW_SCALE = Definition(
    "window_scale",
    "1",
    "scale of the receiver's windows, as a power of two; 0: none",
    "RFC 7323",
    most=14,
)
WINDOW_MOST = Definition("window_most", "bytes", "largest window that the handshake allows")
WINDOW_MOST_RATE = Definition(
    "window_most_rate", "Mbit/s", "rate of such a window per round trip of the handshake"
)


class WindowScaling(FromOne):
    """Window scaling of each direction."""

    title = "Window scaling"
    per_direction = (WINDOW_SCALE, WINDOW_MOST, WINDOW_MOST_RATE)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        shift = int(facts.window_shift[direction])
        if shift < 0:
            return dict.fromkeys(self.per_direction, NO_SCALE_SEEN)
        most, trip_ns = 65535 << shift, float(facts.handshake_ns[direction])
        return {
            WINDOW_SCALE: shift,
            WINDOW_MOST: most,
            WINDOW_MOST_RATE: most * 8e3 / trip_ns if trip_ns > 0 else NO_SCALE_SEEN,
        }

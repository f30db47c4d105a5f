"""Zero windows: times for which the data's receiver announced that it takes nothing more.

A zero window begins with an ACK that announces 0, whether pure, on data or on a FIN, and ends with
the next one that announces more. While it lasts, answers to the sender's probes repeat the 0; the
last zero window of a capture lasts as far as they show. The receiver's application does not read.

    zero_windows         = number of these times
    zero_window_time     = their sum
    zero_window_longest  = the longest
    zero_window_share    = their share of the time from the first ACK to the last

Units: 1 and s. Overtaken ACKs are left out. A window of 0 needs no scale, and no place of the tap
on the path: it is 0 everywhere, later or sooner by a part of the round trip. A window that is
smaller than a segment, and not 0, is no zero window (`window_shut`, `limited_receive_window`).

Vantage: any, with ACKs. RFC 9293, 3.8.6.1.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

NO_WINDOW = "no ACK of the data: the receiver's window is unknown"

ZERO_WINDOWS = Definition(
    "zero_windows", "1", "times for which the data's receiver announced a window of 0", "RFC 9293"
)
ZERO_WINDOW_TIME = Definition("zero_window_time", "s", "total length of zero windows")
ZERO_WINDOW_LONGEST = Definition("zero_window_longest", "s", "length of the longest zero window")
ZERO_WINDOW_SHARE = Definition(
    "zero_window_share",
    "1",
    "share of the time from the first ACK to the last in zero windows",
    most=1,
)


class ZeroWindow(FromOne):
    """The times for which each direction's receiver shut its window."""

    title = "Zero windows"
    per_direction = (ZERO_WINDOWS, ZERO_WINDOW_TIME, ZERO_WINDOW_LONGEST, ZERO_WINDOW_SHARE)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        windows, shut_ns, longest_ns, whole_ns, *_, until_ns, _ = tally.shut.value_of(
            direction
        ).tolist()
        if not until_ns:
            return dict.fromkeys(self.per_direction, NO_WINDOW)
        return {
            ZERO_WINDOWS: windows,
            ZERO_WINDOW_TIME: shut_ns / 1e9,
            ZERO_WINDOW_LONGEST: longest_ns / 1e9,
            ZERO_WINDOW_SHARE: shut_ns / whole_ns if whole_ns else 0.0,
        }

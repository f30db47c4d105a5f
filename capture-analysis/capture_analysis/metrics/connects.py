"""Connects: how many handshakes were refused or stayed without an answer, and how long others took.

    connects            = connections whose SYN the capture has
    connects_refused    = those that the other end answered with RST
    connects_unanswered = those that it did not answer, or whose handshake did not end; a SYN-ACK
                          that the client resets is an answer
    connect_median      = median time from the first SYN to the end of the handshake
    connect_longest     = the longest

Units: 1 and s. A connect that takes 1 s, 3 s or 7 s more than others lost a SYN or its answer, or
the server's backlog was full, and a timer sent it again. The table of connections has the time of
each (`connect`), and those that failed.

Vantage: any with the handshakes. RFC 9293, 3.5.
"""

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture import lives
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.lives import Life
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

NO_CONNECT = "no handshake that ended"

CONNECTS = Definition("connects", "1", "connections whose SYN the capture has")
CONNECTS_REFUSED = Definition("connects_refused", "1", "connects answered with RST", "RFC 9293")
CONNECTS_UNANSWERED = Definition("connects_unanswered", "1", "connects without an answer")
CONNECT_MEDIAN = Definition("connect_median", "s", "median time from SYN to the handshake's end")
CONNECT_LONGEST = Definition("connect_longest", "s", "longest time from SYN to the handshake's end")


class Connects(FromOne):
    """The handshakes of a capture."""

    title = "Connects"
    per_capture = (CONNECTS, CONNECTS_REFUSED, CONNECTS_UNANSWERED, CONNECT_MEDIAN, CONNECT_LONGEST)

    @override
    def of_capture(self, tally: Tally, facts: Facts) -> Values:
        seen, took_ns = tally.lives.values()[:, lives.SEEN], tally.lives.values()[:, lives.CONNECT]
        asked, ended = (seen & Life.SYN) != 0, (seen & Life.CONNECTED) != 0
        refused, unanswered = lives.failed_connects(seen)
        # np.median would load numpy.ma, a hundredth of a second.
        times = np.sort(took_ns[asked & ended] / 1e9)
        middle = len(times) // 2
        return {
            CONNECTS: int(asked.sum()),
            CONNECTS_REFUSED: int(refused.sum()),
            CONNECTS_UNANSWERED: int(unanswered.sum()),
            CONNECT_MEDIAN: (
                float(times[middle] + times[~middle]) / 2 if len(times) else NO_CONNECT
            ),
            CONNECT_LONGEST: float(times[-1]) if len(times) else NO_CONNECT,
        }

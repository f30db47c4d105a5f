"""Limits from afar: what a transfer waits for, seen at its receiver or on the path.

The ACKs at the tap reach the sender later, and the data at the tap was sent earlier. Both delays
together are the loop from the tap to the sender and back; a tenth of it and 1 ms are added for
variation. With ACKs delayed by that much, packets are in the order in which the sender saw them.
The time from one to the next has the first cause that holds:

    recovery        data is missing below the data seen; or nothing is outstanding for 0.2 s, the
                    last data had no PSH, and losses were seen before: a timer waits for data lost
                    before the tap
    zero window     the receiver announces a window of 0
    receive window  a full segment more would exceed the window that the receiver announced
    pause           nothing is outstanding for a second or more
    application     nothing is outstanding, and the last data had PSH; or the next data answers the
                    other end's: these acknowledged everything, and a loop lies between; or the last
                    data had PSH and were less than a segment, so that nothing was left to send
    Nagle           the last data were such, nothing was lost before, and the next data comes a loop
                    after an ACK of everything, which the receiver delayed by 10 ms or more
    sender          otherwise: the sender held back, by its congestion window or because its
                    application had nothing to send; only a capture near the sender distinguishes
                    these

Self-check: the shares, that of pauses included, sum to 1. If queues add more to the loop than the
tenth, full windows look like a sender that holds back. Without the handshake the scale of windows
is unknown, and the least possible one counts (`transfer_limits`): at the receiver it says little.

Vantage: beyond a tenth of the round trip from the data's sender, or anywhere on a LAN, whose round
trip is the loop; with packets of both directions.
"""

from capture_analysis import waiting_times as waits
from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.metrics.transfer_limits import NO_TIME, missing_scale
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

NOT_FAR = "captured near the data's sender, or at an unknown place"

AFAR_RECOVERY = Definition(
    "afar_recovery", "1", "share of time in which data was missing below the data seen", most=1
)
AFAR_RECEIVE_WINDOW = Definition(
    "afar_receive_window",
    "1",
    "share of time in which the announced window was full when ACKs reached the sender",
    most=1,
)
AFAR_ZERO_WINDOW = Definition(
    "afar_zero_window",
    "1",
    "share of time in which the announced window was 0 when ACKs reached the sender",
    most=1,
)
AFAR_APPLICATION = Definition(
    "afar_application",
    "1",
    "share of time in which the sender had nothing to send: nothing was outstanding, or it waited "
    "for the other end's data",
    most=1,
)
AFAR_PAUSE = Definition(
    "afar_pause",
    "1",
    "share of time in pauses: a second or more with nothing outstanding and an open window",
    most=1,
)
AFAR_SENDER = Definition(
    "afar_sender",
    "1",
    "share of time in which the sender held back: its congestion window or its application",
    most=1,
)
AFAR_NAGLE = Definition(
    "afar_nagle",
    "1",
    "share of time in which small data waited for an ACK that the receiver delayed",
    "RFC 896",
    most=1,
)


class LimitsFromAfar(FromOne):
    """The cause of waiting in each direction, seen from beyond the data's sender."""

    title = "What limits the transfer, from afar"
    vantage = "beyond the data's sender"
    per_direction = (
        AFAR_RECOVERY,
        AFAR_RECEIVE_WINDOW,
        AFAR_ZERO_WINDOW,
        AFAR_APPLICATION,
        AFAR_SENDER,
        AFAR_PAUSE,
        AFAR_NAGLE,
    )

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        if not facts.afar[direction]:
            return dict.fromkeys(self.per_direction, NOT_FAR)
        spent = tally.waits.by_cause(direction)
        if not sum(spent):
            return dict.fromkeys(self.per_direction, NO_TIME)
        shares = [each / sum(spent) for each in spent]
        return {
            AFAR_RECOVERY: shares[waits.RECOVERY],
            AFAR_RECEIVE_WINDOW: missing_scale(direction, facts) or shares[waits.RECEIVER],
            AFAR_ZERO_WINDOW: shares[waits.SHUT],
            AFAR_APPLICATION: shares[waits.APPLICATION],
            AFAR_SENDER: shares[waits.CONGESTION],
            AFAR_PAUSE: shares[waits.PAUSE],
            AFAR_NAGLE: shares[waits.NAGLE],
        }

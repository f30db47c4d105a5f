"""Limits: the causes for which a transfer waits, by share of its time.

The time from a direction's first packet to its last is divided at each of its packets: data, and
ACKs, whether pure, on data of the opposite direction or on a FIN. Each part belongs to the first
cause that holds:

    loss recovery      the next data is sent again, or data sent before the last
                       retransmission is not acknowledged yet
    zero window        the receiver announces a window of 0
    receive window     a full segment more would exceed the window that the receiver announced
    pause              nothing is outstanding for a second or more
    application        nothing is outstanding; or the next data answers the other end's; or it comes
                       neither soon after an ACK nor soon after the last data; or the last data had
                       PSH and could hold more; or there is no next data
    send buffer        the last data had PSH, and three ACKs or more came since, which released
                       nothing: the application had written no more
    Nagle              less than a full segment was outstanding, nothing was lost before, and the
                       next data came soon after its ACK (RFC 896)
    congestion window  otherwise: data waits for an ACK
    ACK compression    the part of a wait for either window by which the ACK's gap grew since both
                       ACKs were sent, minus a tick of their time stamps: a queue on the ACKs'
                       path held the ACK, and the ACKs behind it leave that queue compressed

"Soon" is a fiftieth of the round trip, at least 0.1 ms and at most 1 ms, and 1.1 of the time from
the tap to the sender and back. A sender may also pace its window: gaps of up to a tenth of the
round trip, at least 1 ms, count as the window's, unless nothing was lost and four times the
largest flight was sent since the flight last grew. Data answers the other end's if these
acknowledge everything, and were the last packet with payload. `timeouts` counts retransmissions
that follow 0.2 s of silence. `nagle_waits` counts the waits for the ACK of a small segment, each
as long as the receiver delays that ACK, and `nagle_time` is their cost. After Zhang, Breslau,
Paxson, Shenker 2002, who have no ACK compression.

Self-check: the shares, that of pauses included, sum to 1. A step of the clock back counts as no
time.

ACKs that a queue held and ACKs that their medium delayed look alike. Waits that the tick hides stay
in the windows' shares; without time stamps all of them do.

Vantage: near the data's sender, where data follows the ACK that released it. The window's scale
needs the handshake with all of its options; a window of 0 needs no scale. Without it the least
scale counts that allowed what was sent: the receive window is full for no longer, so that its share
is unknown, and those of the causes that need an open window are at least so large. On a LAN the
application's share is unknown if full segments come evenly, unless the tap's place is known: a full
link may be before it.
"""

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import LAN_NS, NEAR, OPTION_CUT, Facts, Placed
from capture_analysis.one_capture.evidence import missing_place
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.waiting_times import (
    ACKS,
    APPLICATION,
    BUFFER,
    CONGESTION,
    NAGLE,
    PAUSE,
    RECEIVER,
    RECOVERY,
    SHUT,
)

_SOURCE = "Zhang, Breslau, Paxson, Shenker 2002"
NOT_NEAR = "not captured near the data's sender, where the ACKs that release data are seen"
NO_SCALE_SEEN = "no handshake in the capture: the scale of windows is unknown"
SCALE_WAS_CUT = (
    "the capture cut the handshake's options, and the scale of windows is unknown: a snap length "
    "of 128 bytes (tcpdump -s 128) keeps them"
)
NO_TIME = "fewer than two packets"
_ASKED = 10  # more segments than the other end's are no answers to these
_EVENLY = 0.9  # share of gaps that agree, and of their rate that is reached
EVEN = "its data come evenly, by its application or from a full link before the tap"
NO_STAMPS = "no time stamps in the ACKs: the time of sending is unknown"

LIMITED_APPLICATION = Definition(
    "limited_application",
    "1",
    "share of time in which the sender had nothing to send",
    _SOURCE,
    most=1,
)
LIMITED_RECOVERY = Definition(
    "limited_recovery", "1", "share of time in which losses were being repaired", _SOURCE, most=1
)
LIMITED_RECEIVE_WINDOW = Definition(
    "limited_receive_window",
    "1",
    "share of time in which the announced window was full",
    _SOURCE,
    most=1,
)
LIMITED_CONGESTION_WINDOW = Definition(
    "limited_congestion_window",
    "1",
    "share of time in which data waited for ACKs, though the announced window was open",
    _SOURCE,
    most=1,
)
LIMITED_SEND_BUFFER = Definition(
    "limited_send_buffer",
    "1",
    "share of time in which ACKs released nothing, because the sender's buffer held nothing unsent",
    most=1,
)
LIMITED_ACK_COMPRESSION = Definition(
    "limited_ack_compression",
    "1",
    "share of time in which data waited for ACKs that were held on their path",
    most=1,
)
LIMITED_ZERO_WINDOW = Definition(
    "limited_zero_window",
    "1",
    "share of time in which the receiver announced a window of 0",
    most=1,
)
LIMITED_PAUSE = Definition(
    "limited_pause",
    "1",
    "share of time in pauses: a second or more with nothing outstanding and an open window",
    most=1,
)
LIMITED_NAGLE = Definition(
    "limited_nagle",
    "1",
    "share of time in which the next data waited for the ACK of less than a segment",
    "RFC 896",
    most=1,
)
NAGLE_WAITS = Definition("nagle_waits", "1", "small data that waited for an ACK", "RFC 896")
NAGLE_TIME = Definition("nagle_time", "s", "time that these waits cost", "RFC 896")
TIMEOUTS = Definition("timeouts", "1", "retransmissions after 0.2 s without a packet")


def missing_scale(direction: int, facts: Facts) -> str:
    """Return the reason why the scale of a direction's windows is unknown; "" if it is known."""
    shift = int(facts.window_shift[direction])
    return "" if shift >= 0 else SCALE_WAS_CUT if shift == OPTION_CUT else NO_SCALE_SEEN


def missing_pace(direction: int, tally: Tally, facts: Facts) -> str:
    """Return EVEN if full segments come at a link's pace, and may have passed that link; else "".

    On a LAN the tap is at the sender if nothing contradicts that; TTLs or times confirm it. The
    data of a conversation come as they are asked for. A link on which an ACK takes longer than the
    round trip is not on the path.
    """
    confirmed = int(facts.tap_evidence[direction]) & (Placed.TIMES | Placed.TTL)
    even = facts.rate_share[direction] > _EVENLY
    reached = facts.delivered_bit[direction] > _EVENLY * facts.rate_bit[direction]
    beside = facts.round_trip_ns[direction] < LAN_NS and not confirmed
    passed = facts.ack_frame_bytes[direction] * facts.data_ns_per_byte[direction]
    beside &= passed < facts.round_trip_ns[direction]
    asked = _ASKED * tally.segments(direction ^ 1) > tally.segments(direction)
    full = not (asked or facts.small[direction])
    return EVEN if beside and even and reached and full else ""


class TransferLimits(FromOne):
    """The causes for which each direction waited."""

    title = "What limits the transfer"
    vantage = "near the data's sender"
    per_direction = (
        LIMITED_APPLICATION,
        LIMITED_RECOVERY,
        LIMITED_RECEIVE_WINDOW,
        LIMITED_CONGESTION_WINDOW,
        LIMITED_ACK_COMPRESSION,
        LIMITED_SEND_BUFFER,
        LIMITED_ZERO_WINDOW,
        LIMITED_PAUSE,
        LIMITED_NAGLE,
        NAGLE_WAITS,
        NAGLE_TIME,
        TIMEOUTS,
    )

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        if not facts.tap_at[direction] <= NEAR:
            unknown = np.isnan(facts.tap_at[direction])
            why = missing_place(direction, tally) if unknown else NOT_NEAR
            return dict.fromkeys(self.per_direction, why)
        spent = tally.waits.by_cause(direction)
        if not sum(spent):
            return dict.fromkeys(self.per_direction, NO_TIME)
        shares = [each / sum(spent) for each in spent]
        scale, (unseen, _) = missing_scale(direction, facts), tally.unseen.value_of(direction)
        return {
            LIMITED_APPLICATION: missing_pace(direction, tally, facts) or shares[APPLICATION],
            LIMITED_RECOVERY: shares[RECOVERY],
            LIMITED_RECEIVE_WINDOW: scale or shares[RECEIVER],
            # If ACKs are missing, too, the least scale that allows the data is too large.
            LIMITED_CONGESTION_WINDOW: (unseen and scale) or shares[CONGESTION],
            LIMITED_ACK_COMPRESSION: (
                NO_STAMPS if np.isnan(facts.tick_ns[direction]) else shares[ACKS]
            ),
            LIMITED_SEND_BUFFER: shares[BUFFER],
            LIMITED_ZERO_WINDOW: shares[SHUT],
            LIMITED_PAUSE: shares[PAUSE],
            LIMITED_NAGLE: shares[NAGLE],
            NAGLE_WAITS: tally.waits.nagles(direction),
            NAGLE_TIME: spent[NAGLE] / 1e9,
            TIMEOUTS: tally.waits.timeouts(direction),
        }

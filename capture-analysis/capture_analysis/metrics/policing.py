"""Policing: losses without a queue, at a steady rate.

A policer drops what exceeds its rate and delays nothing: round trips stay, segments are lost again
and again, and between the losses the data pass at its rate.

    loss_events     = segments that were sent again or came late
    loss_rate       = new data between the first of them and the last, over the time between them
    loss_rate_share = that rate over the direction's rate of all its time without pauses

Units: 1 and Mbit/s. The sentence on the limit names a policer with ten losses or more, a share near
1 and no standing queue (`standing_queue` below 0.1), if these are too many for random losses. Near
the sender: share lost * segments in flight^2 is above 6, with 2 % lost, and the 95th percentile of
round trips is below 1.3 of the shortest. A window that halves at each random loss has 1.5, CUBIC's
up to 3 (Mathis et al. 1997). From afar, where the window is not seen: 4 % are lost. Overtaken
segments, and those sent again without need, are not lost; a stall of a fifth of the time is an
interruption of the path.

Vantage: any with data and ACKs; best near the sender. Flach et al. 2016.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

_LOSSES = 10
TOO_FEW = "fewer than 10 segments were sent again or came late"

LOSS_EVENTS = Definition("loss_events", "1", "segments that were sent again or came late")
LOSS_RATE = Definition(
    "loss_rate", "Mbit/s", "rate of new data from the first loss to the last", "Flach 2016"
)
LOSS_RATE_SHARE = Definition("loss_rate_share", "1", "that rate over the rate of all data")


class Policing(FromOne):
    """Losses at a steady rate of each direction."""

    title = "Losses at a steady rate"
    per_direction = (LOSS_EVENTS, LOSS_RATE, LOSS_RATE_SHARE)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        found = tally.symptoms(direction)
        spent_ns = found.loss_last_ns - found.loss_first_ns
        if found.losses < _LOSSES or spent_ns <= 0:
            return {LOSS_EVENTS: found.losses} | dict.fromkeys(self.per_direction[1:], TOO_FEW)
        rate = (found.loss_last_bytes - found.loss_first_bytes) * 8e3 / spent_ns
        active_ns = tally.active_ns(direction)
        whole = found.bytes * 8e3 / active_ns if active_ns else 0.0
        return {
            LOSS_EVENTS: found.losses,
            LOSS_RATE: rate,
            LOSS_RATE_SHARE: rate / whole if whole else TOO_FEW,
        }

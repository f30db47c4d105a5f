"""Utilisation and efficiency: the used share of a link, and one connection's share.

    utilisation = (time in which the link transmits) / (time); pauses are left out in captures
    link_share = 8 * (bytes of all of a connection's frames in a direction) / (rate * time of data)
    efficiency = 8 * (new payload) / (time of data) / (rate * payload of a full segment / its frame)
    link_use = 8 * (bytes of the frames of all with the rate in a direction) / (rate * their time)

Efficiency is 1 for a connection alone on a link that it keeps full of data (Kalampoukas, Varma,
Ramakrishnan 1998: 2/3 for two with adequate windows, one in each direction). Connections that share
a link divide its utilisation among them.
"""

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.facts.delivery_rate import MOST_UTILISATION
from capture_analysis.facts.facts import Facts
from capture_analysis.metrics.goodput import TOO_FEW, later_payload
from capture_analysis.one_capture.evidence import missing_rate
from capture_analysis.one_capture.from_one import FromOne, Value, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

# A link's rate is in doubt if packets came at another even pace for this share of the time.
_MOST_OTHER_PACE = 0.25
OTHER_PACE = "packets came evenly at a slower pace, too: the link's rate may have changed"
TOO_SHORT = "sent into the link's queue faster than the link carries, and too short to tell"


UTILISATION = Definition("utilisation", "1", "share of time in which the link transmits")
UTILISATION_OPPOSITE = Definition(
    "utilisation_opposite",
    "1",
    "share of time in which the link of the opposite direction transmits",
)
LINK_SHARE = Definition(
    "link_share",
    "1",
    "share of the link's capacity that the connection's bytes in this direction use",
)
EFFICIENCY = Definition(
    "efficiency",
    "1",
    "rate of new payload over that of full segments back to back on the link",
    "Kalampoukas, Varma, Ramakrishnan 1998",
)
LINK_USE = Definition(
    "link_use",
    "1",
    "share of the link's capacity that the bytes of all connections with the rate use",
)


class LinkShare(FromOne):
    """A connection's share of its data's bottleneck, and its efficiency.

    Vantage: any. Frames are as captured; pauses are left out of the time. The rate must be measured
    or given (bottleneck_rate). Above MOST_UTILISATION (1.05) there is no value: before the queue a
    short transfer comes faster than the link carries it. If packets came evenly at a slower pace,
    too, for more than a quarter of the time at the capture's start, sixteen and more in a row, the
    link may have had another rate then, and its use is unknown.
    """

    title = "Share of the link, and efficiency"
    picture = "rates"
    per_direction = (LINK_SHARE, EFFICIENCY, LINK_USE)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        rate_bit, active_ns = float(facts.rate_bit[direction]), tally.active_ns(direction)
        why = missing_rate(direction, facts) if active_ns else TOO_FEW
        if why:
            return dict.fromkeys(self.per_direction, why)
        # This half's ACKs acknowledge the data of the opposite direction.
        sent = tally.data_frame_bytes.value_of(direction) + tally.ack_frame_bytes.value_of(
            direction ^ 1
        )
        segment, frame = facts.segment_bytes[direction], facts.segment_frame_bytes[direction]
        payload = later_payload(direction, tally)
        found = {
            LINK_SHARE: 8e9 * sent / (rate_bit * active_ns),
            EFFICIENCY: 8e9 * payload * int(frame) / (rate_bit * active_ns * int(segment)),
            LINK_USE: _bits(direction, tally, facts) / rate_bit,
        }
        values: dict[Definition, Value] = {
            name: TOO_SHORT if v > MOST_UTILISATION else v for name, v in found.items()
        }
        if facts.rate_other_pace[direction] > _MOST_OTHER_PACE:
            values[LINK_USE] = OTHER_PACE
        return values


def _bits(direction: int, tally: Tally, facts: Facts) -> float:
    """Compute the rate of all connections that share a direction's link, bit/s.

    Connections share it if their data goes in the same direction over the same link (shared_links);
    their time is from the first data of any to the last, without the pauses of the one that pauses
    least. If the link cannot have carried that, they did not pause together, and all the time
    counts.
    """
    is_own = np.arange(len(facts)) == direction
    rows = np.flatnonzero(
        (facts.origin == facts.origin[direction])
        & (facts.rate_bit == facts.rate_bit[direction])
        & ((facts.link == facts.link[direction]) & (facts.link >= 0) | is_own)
        & (facts.segment_bytes > 0)
    )
    sent = (
        tally.data_frame_bytes.values_of(rows).sum()
        + tally.ack_frame_bytes.values_of(rows ^ 1).sum()
    )
    time_ns = int(tally.last_ns.values_of(rows).max() - tally.first_ns.values_of(rows).min())
    time_ns += int(tally.back_ns.values_of(rows)[:, 0].max())
    active_ns = time_ns - int(tally.pause_ns.values_of(rows).min())
    bits = 8e9 * int(sent)
    if len(rows) > 1 and bits > MOST_UTILISATION * facts.rate_bit[direction] * active_ns:
        active_ns = time_ns
    return bits / max(active_ns, 1)

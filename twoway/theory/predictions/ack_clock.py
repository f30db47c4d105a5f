"""ACKs over a link that sends by a table, and the throughput of their connection.

Each ACK lets its sender send as many segments as it acknowledges. If fewer ACKs pass than the
data's link has time for segments, data goes at the ACKs' pace: a cable network with a grant each 3
to 5 ms, and one ACK in each, passes only 4 to 2.4 Mbit/s of full packets, however fast the downlink
is. Otherwise data leaves back to back, so ACKs come to their link equally spaced, and leave it by
the table. Both hold for a window that always keeps a segment or an ACK waiting.

Bunches and factors are counted here, gap by gap, without code of the instrument that measures them:
if that instrument has a fault, its measurement misses the prediction.
"""

from itertools import groupby
from statistics import median

import numpy as np
from capture_analysis.columns import IntArray

from twoway.links.element import RateShaper
from twoway.links.rate import Rate
from twoway.links.timetable import Timetable
from twoway.theory.network import Bottleneck, Setup

NAME = "ack_clock"
# Number of arrival times of the first ACK that are tried, within the time of a segment.
_PHASES = 16
# By the definitions of the metrics, ACKs at most this many transmission times apart form one bunch,
# and a gap is compressed if it shrinks below this share.
_TOGETHER, _COMPRESSED = 2, 0.75


def predict(setup: Setup) -> dict[str, float]:
    """Predict throughput, and bunches and compression of equally spaced ACKs.

    Raises: ValueError with a sentence if there is more than one connection, if its ACKs pass no
        such link, or if the largest bunch depends on when the first ACK comes.
    """
    if len(setup.connections) != 1 or setup.datagrams:
        raise ValueError("it has one connection and nothing else")
    (each,) = setup.connections
    if len(each.directions) != 1 or len(each.ack_directions) != 1:
        raise ValueError(f"{each.name} passes several queues")
    link, back = setup.links[each.direction], setup.links[each.ack_direction]
    rate = back.elements.find(Rate)
    if rate is None or link.elements.contains(RateShaper):
        raise ValueError(f"only {each.name}'s ACKs may pass a link that sends by a table")
    if any(each.elements.drop for each in (link, back)):
        raise ValueError(f"{each.name} passes a link that loses packets")
    table, data_ns = rate.table, int(link.data_s * 1e9)
    start_ns, stop_ns = (round(s * 1e9) for s in (setup.warm_up_s, setup.duration_s))
    per_ack = 1 if setup.acks_every_segment else 2
    # The most ACKs whose segments can be sent in the window; all wait before the window begins.
    most = (stop_ns - start_ns) // data_ns // per_ack
    ends_ns = _leaves(table, back, np.full(most, start_ns - 1))
    passed = int(np.count_nonzero(ends_ns < stop_ns))
    if passed < most:
        mbit = passed * per_ack * link.data_s * link.rate_bit / (stop_ns - start_ns) * 1e3
        return {f"throughput.{each.name}": mbit}
    found = {f"throughput.{each.name}": link.rate_bit / 1e6}
    if setup.acks_every_segment:
        sent_ns = np.arange(start_ns, stop_ns, data_ns)
        found |= _bunches(each.name, table, back, sent_ns, data_ns)
    return found


def _leaves(table: Timetable, back: Bottleneck, sent_ns: IntArray) -> IntArray:
    sizes = np.full(len(sent_ns), round(back.ack_s * back.rate_bit / 8))
    return table.leaves(0, sent_ns, sizes)


def _bunches(
    name: str, table: Timetable, back: Bottleneck, sent_ns: IntArray, data_ns: int
) -> dict[str, float]:
    """Find the largest bunch and the median factor of ACKs that come `data_ns` apart."""
    largest, factors = set(), []
    for phase in range(_PHASES):
        left_ns = _leaves(table, back, sent_ns + phase * data_ns // _PHASES)
        gaps_ns = np.diff(left_ns).tolist()
        runs = groupby(gap <= _TOGETHER * back.ack_s * 1e9 for gap in gaps_ns)
        largest.add(1 + max((sum(run) for together, run in runs if together), default=0))
        factors += [data_ns / gap for gap in gaps_ns if 0 < gap < _COMPRESSED * data_ns]
    if len(largest) > 1:
        raise ValueError(f"{name}'s bunches depend on when the first ACK comes: {sorted(largest)}")
    found = {f"ack_bunch_max.{name}": float(largest.pop())}
    if factors:
        found[f"compression_factor.{name}"] = median(factors)
    return found

"""Find the connections that share a link: a rate belongs to a path, and not to a capture.

Connections between the same two hosts share their path. Those between other hosts share a link only
if the capture shows it: the packets of one path follow those of another at a pace that is a true
mode (gap_modes.py), as only a queue before a common link makes it.
"""

import numpy as np

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.facts.directions import Block, View
from capture_analysis.facts.facts import AGREES, Facts, FloatArray
from capture_analysis.facts.gap_modes import modes

# Paths of several connections that get a number of their own, those with most packets first.
_MOST_PATHS = 16
# A path shares a link if this number of its packets follow others at the link's pace, and this
# share of the usual.
_LEAST_PACKETS, _LEAST_SHARE = 5, 0.5


def shared_links(head: Block, facts: Facts, path: IntArray) -> IntArray:
    """Give each direction the number of its link, shape (directions,).

    It is its origin, 0 or 1, for a link that all paths from there share, 2 or more for a path of
    several connections, and -1 if nothing shows that others share the link.

    Args:
        head: the first packets.
        facts: sizes, and the origin of each direction.
        path: shape (directions,), number of each direction's ordered pair of hosts.
    """
    link = np.full(len(path), -1)
    carries = facts.segment_bytes > 0
    for end in (0, 1):
        mine = facts.origin == end
        paths = path[mine & carries]
        if (paths == paths[:1]).all():
            link[mine] = end
    if (link >= 0).all():
        return link
    together = np.zeros(len(path), dtype=np.bool_)
    frame_share = facts.segment_frame_bytes / np.maximum(facts.segment_bytes, 1)
    for view, bits in (
        (head.data, 8.0 * head.data["frame_bytes"]),
        (head.acks, 8 * head.acks["acked_bytes"] * head.acks.spread(frame_share)),
    ):
        together |= _following(view, np.asarray(bits, np.float64), head, path)
    link = np.where((link < 0) & together, facts.origin, link)
    return _by_path(link, path, head)


def _following(view: View, bits: FloatArray, head: Block, path: IntArray) -> BoolArray:
    """Mark directions whose packets follow those of other paths at a common pace."""
    order, facts = view.places, head.facts
    direction = view.direction.take(order)
    end, time_ns = facts.origin[direction], head.packets.time_ns.take(view.rows.take(order))
    gap_ns = np.full(len(order), -1)
    for each in (0, 1):
        mine = np.flatnonzero(end == each)
        other = np.diff(path[direction[mine]]) != 0
        gap_ns[mine[1:]] = np.where(other, np.diff(time_ns[mine]), -1)
    bits = bits.take(order)
    link = modes(end, bits, gap_ns, 2, 1)
    usable = (gap_ns > 0) & (bits > 0) & link.true[end]
    rate_bit = link.rate_bit[end]
    away = np.abs(np.log(np.where(usable, bits * 1e9 / np.maximum(gap_ns, 1) / rate_bit, 2)))
    size = int(path.max(initial=-1)) + 1
    followed = np.bincount(path[direction], usable, size)
    close = np.bincount(path[direction], usable & (away <= AGREES), size)
    least = np.maximum(_LEAST_SHARE * link.share[facts.origin] * followed[path], _LEAST_PACKETS)
    found: BoolArray = close[path] >= least
    return found


def _by_path(link: IntArray, path: IntArray, head: Block) -> IntArray:
    """Give a number to paths of several connections whose link is not shown to be shared."""
    packets = np.zeros(len(path), dtype=np.int64)
    packets[head.data.directions] = head.data.counts
    open_ = (link < 0) & (packets > 0)
    size = int(path.max(initial=-1)) + 1
    connections = np.bincount(path[open_], minlength=size)
    weight = np.bincount(path[open_], packets[open_], size) * (connections > 1)
    numbered = np.argsort(-weight, kind="stable")[:_MOST_PATHS]
    number = np.full(size, -1)
    numbered = numbered[weight[numbered] > 0]
    number[numbered] = 2 + np.arange(len(numbered))
    return np.where(link < 0, number[path], link)

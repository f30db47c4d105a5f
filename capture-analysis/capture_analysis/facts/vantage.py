"""Locate the tap on the path, by the round trips to both ends.

On a LAN times tell little, and the tap's place follows from what a path does to packets. Each kind
of evidence is a column of votes by direction: -1 places the tap at the data's sender, or beside it,
1 at the receiver, 0 nowhere.

    checksums   one end leaves those of packets without payload to its network card, behind the tap;
                packets with payload do not count, because receivers that merge them clear theirs
    padding     one end's short ACKs are padded to 60 bytes, as on a wire, the other's are not
    TTL         one end's TTLs are those with which hosts send, the other's are lower
    times       the handshake took twice as long to the other host; without a handshake, data

The first two are proofs: times and TTLs count only without them, because hosts take as long as the
path does, and containers are behind a router of their own host. Evidence of equal rank that
contradicts itself leaves the place unknown. Without evidence the tap counts as at the sender: no
queue worth the name is between them. TTLs below a host's contradict that, too. Segments longer than
the MSS tell nothing: a sender's card cuts them, a receiver's merges them.
"""

from dataclasses import dataclass

import numpy as np

from capture_analysis.columns import FLAG_ACK, FLAG_SYN, BoolArray, IntArray, Mark
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import LAN_NS, FloatArray, Placed, swap_directions
from capture_analysis.tracking import Kind

NEVER = np.iinfo(np.int64).max
# Number of packets over which time stamps are matched with their echoes.
ECHO_PACKETS = 1 << 15
# If the places by handshake and by data are further apart than this, the place is unknown.
LEAST_AGREEMENT = 0.5
# Votes for an end of the path.
SENDER, RECEIVER = -1, 1
# Frames of an ACK without options, on Ethernet: as its host makes it, and as a wire carries it.
_HEADERS, _OWN_BYTES, _PADDED_BYTES = 40, 54, 60
_MOST = 0.5  # of a half's packets


@dataclass(frozen=True)
class Loops:
    """Columns by direction: the shortest round trip to the data's receiver.

    Attributes:
        time_ns: NEVER without a round trip.
        samples: number of round trips.
        total_ns: their sum.
    """

    time_ns: IntArray
    samples: IntArray
    total_ns: FloatArray


@dataclass(frozen=True)
class Tap:
    """Columns by direction: tap_*, round_trip_ns and handshake_ns of Facts, and waiting_ns.

    The last is the mean time from the tap to the data's receiver and back, minus the shortest: the
    delay that queues and late answers add; NaN if unknown.
    """

    at: FloatArray
    evidence: IntArray
    agreement: FloatArray
    samples: IntArray
    round_trip_ns: FloatArray
    waiting_ns: FloatArray
    handshake_ns: FloatArray


def locate_tap(block: Block) -> Tap:
    """Estimate the place of the tap on the path of each direction's data.

    The round trip from the tap to the data's receiver is that from data to its ACKs. The one to the
    data's sender is that from the opposite data to its ACKs, or from an ACK's time stamp to its
    echo in data. The handshake's three packets give both at once. If it and the data agree by less
    than LEAST_AGREEMENT, times do not tell the place. Then, and on a LAN, other evidence counts.

    Args:
        block: the first packets; its facts have the sizes.
    """
    directions = len(block.facts)
    acked, echoed = _ack_loops(block, directions), _echo_loops(block, directions)
    receiver = acked.time_ns
    mean_ns = acked.total_ns / np.where(acked.samples, acked.samples, np.nan)
    sender = np.minimum(swap_directions(receiver), echoed.time_ns)
    samples = np.minimum(acked.samples, swap_directions(acked.samples) + echoed.samples)
    handshake = _handshake_loops(block, directions)
    by_data, by_handshake = _share(sender, receiver), _share(swap_directions(handshake), handshake)
    # A late answer makes a round trip seem longer; nothing makes it seem shorter.
    sender, receiver = (
        np.minimum(sender, swap_directions(handshake)),
        np.minimum(receiver, handshake),
    )
    at = share = _share(sender, receiver)
    known = (sender != NEVER) & (receiver != NEVER)
    round_trip_ns = np.where(known, sender.astype(np.float64) + receiver, np.nan)
    agreement = 1 - np.abs(by_data - by_handshake)
    agreement = np.where(np.isnan(agreement), np.where(np.isnan(at), 0, 0.5), agreement)
    at = np.where(agreement < LEAST_AGREEMENT, np.nan, at)
    lan = (round_trip_ns < LAN_NS) & ~np.isnan(share)
    evidence = np.where(np.isnan(at), 0, Placed.TIMES)
    unsure = lan | (np.isnan(at) & ~np.isnan(share))
    if unsure.any():
        placed, found = _place(block, np.where(lan, _on_a_lan(share, by_handshake), 0), lan)
        at, evidence = np.where(unsure, placed, at), np.where(unsure, found, evidence)
    seen = (handshake != NEVER) & (swap_directions(handshake) != NEVER)
    whole_ns = handshake.astype(np.float64) + swap_directions(handshake)
    handshake_ns = np.where(seen & (whole_ns > 0), whole_ns, np.nan)
    samples = samples + (handshake != NEVER)
    return Tap(
        at, evidence, agreement, samples, round_trip_ns, mean_ns - acked.time_ns, handshake_ns
    )


def _on_a_lan(by_data: FloatArray, by_handshake: FloatArray) -> IntArray:
    """Return the votes of times on a LAN, where hosts take as long as the path.

    The handshake tells if one host takes half as long as the other; ACKs of data, which a receiver
    may send sooner than any other packet, tell only without it.
    """
    known = ~np.isnan(by_handshake)
    share, most = np.where(known, by_handshake, by_data), np.where(known, 2 / 3, 0.5)
    return np.where(share <= 1 - most, SENDER, np.where(share >= most, RECEIVER, 0))


def _share(to_sender_ns: IntArray, to_receiver_ns: IntArray) -> FloatArray:
    """Compute the tap's place between sender (0) and receiver (1)."""
    known = (to_sender_ns != NEVER) & (to_receiver_ns != NEVER)
    both = to_sender_ns.astype(np.float64) + to_receiver_ns
    known &= both > 0
    return np.where(known, to_sender_ns / np.where(known, both, 1), np.nan)


def round_trip_change_ns(block: Block, directions: int) -> IntArray:
    """Subtract the shortest time from data to its ACK from the longest, by direction.

    It is 0 for directions without such times.
    """
    lane, loop_ns = _from_data_to_acks(block)
    longest = np.zeros(directions, dtype=np.int64)
    np.maximum.at(longest, lane, loop_ns)
    return longest - np.minimum(_shortest_loops(lane, loop_ns, directions).time_ns, longest)


def _ack_loops(block: Block, directions: int) -> Loops:
    return _shortest_loops(*_from_data_to_acks(block), directions)


def _from_data_to_acks(block: Block) -> tuple[IntArray, IntArray]:
    """Time data to its ACKs; return the direction of the data, and the time.

    A packet that acknowledges belongs to the opposite half's data.
    """
    rows = np.flatnonzero(block.tracked.rtt_ns >= 0)
    packets = block.packets
    lane = (packets.flow[rows].astype(np.int64) << 1 | packets.half[rows]) ^ 1
    return lane, block.tracked.rtt_ns[rows].astype(np.int64)


def _echo_loops(block: Block, directions: int) -> Loops:
    """Time an ACK's time stamp to the first data that echoes it."""
    packets = block.packets.where(slice(ECHO_PACKETS))
    stamped = (packets.marks & Mark.TIMESTAMPS) != 0
    lane = packets.flow.astype(np.int64) << 1 | packets.half
    echo = stamped & (packets.payload_bytes > 0) & (packets.ts_echo > 0)
    value, at = np.unique(lane[stamped] << 32 | packets.ts_value[stamped], return_index=True)
    sought, first = np.unique((lane[echo] ^ 1) << 32 | packets.ts_echo[echo], return_index=True)
    place = np.searchsorted(value, sought)
    found = place < len(value)
    found[found] = value[place[found]] == sought[found]
    sent_ns = packets.time_ns[stamped][at[place[found]]]
    loop_ns = packets.time_ns[echo][first[found]] - sent_ns
    later = loop_ns >= 0
    return _shortest_loops((sought[found][later] >> 32) ^ 1, loop_ns[later], directions)


def _handshake_loops(block: Block, directions: int) -> IntArray:
    """Time the handshake from the tap to the receiver and back.

    Returns: times by direction, ns; NEVER without a handshake.

    The times are from SYN to SYN-ACK, and from SYN-ACK to its answer, unless either was sent again.
    """
    loops = np.full(directions, NEVER)
    packets = block.packets
    syn = np.flatnonzero(((packets.flags & FLAG_SYN) != 0) & (block.tracked.kind != Kind.COPY))
    flow, time_ns = packets.flow[syn].astype(np.int64), packets.time_ns[syn]
    answers = (packets.flags[syn] & FLAG_ACK) != 0
    once = [
        np.bincount(flow[which], minlength=directions // 2) == 1 for which in (~answers, answers)
    ]
    whole = np.flatnonzero(once[0] & once[1])
    asked, answered = np.zeros((2, directions // 2), dtype=np.int64)
    half = np.zeros(directions // 2, dtype=np.int64)
    asked[flow[~answers]] = time_ns[~answers]
    half[flow[~answers]] = packets.half[syn][~answers]
    answered[flow[answers]] = time_ns[answers]
    third_ns = _first_after(block, whole, half[whole])
    loop_ns = np.stack((answered[whole] - asked[whole], third_ns - answered[whole]))
    good = (loop_ns >= 0).all(axis=0) & (third_ns != NEVER)
    for loop, sender in zip(loop_ns, (half[whole], half[whole] ^ 1), strict=True):
        loops[(2 * whole + sender)[good]] = loop[good]
    return loops


def _first_after(block: Block, flow: IntArray, half: IntArray) -> IntArray:
    """Find the time of the first packet without SYN from one half of each connection."""
    packets = block.packets
    rows = np.flatnonzero((packets.flags & FLAG_SYN) == 0)[::-1]
    sent_by = packets.flow[rows].astype(np.int64) << 1 | packets.half[rows]
    size = max(int(sent_by.max(initial=-1)), int(flow.max(initial=-1)) * 2 + 1) + 1
    first = np.full(size, NEVER)
    first[sent_by] = packets.time_ns[rows]  # in reverse: the earliest is written last
    found: IntArray = first[2 * flow + half]
    return found


def _shortest_loops(direction: IntArray, time_ns: IntArray, directions: int) -> Loops:
    shortest = np.full(directions, NEVER)
    np.minimum.at(shortest, direction, time_ns)
    samples = np.bincount(direction, minlength=directions)
    total_ns = np.bincount(direction, time_ns, directions).astype(np.float64)
    return Loops(shortest, samples, total_ns)


def _place(block: Block, times: IntArray, guess: BoolArray) -> tuple[FloatArray, IntArray]:
    """Place the tap by the evidence of a block, whose facts have the sizes.

    Args:
        block: the first packets.
        times: the votes of times, by direction.
        guess: directions whose tap counts as at the sender if nothing tells.

    Returns: the place, by direction, 0, 1 or NaN, and bits of Placed.
    """
    sent_by = (block.packets.flow.astype(np.int64) << 1) | block.packets.half
    marks, directions = block.packets.marks, len(block.facts)
    empty = block.packets.payload_bytes == 0
    unfilled = _mostly(sent_by[empty], marks[empty] & Mark.UNFILLED, directions)
    first_ttl = _mostly(sent_by, marks & Mark.FIRST_TTL, directions)
    # The ACKs of a direction are frames of its receiver.
    plain = block.facts.header_bytes == _HEADERS
    acks = np.where(plain, block.facts.ack_frame_bytes, 0)
    padding = _either(acks == _OWN_BYTES) & _either(acks == _PADDED_BYTES)
    padding = np.where(padding, np.where(swap_directions(acks) == _OWN_BYTES, SENDER, RECEIVER), 0)
    ranks = (
        {Placed.CHECKSUMS: _vote(unfilled), Placed.PADDING: padding},
        {Placed.TTL: _vote(first_ttl), Placed.TIMES: times},
    )
    at = np.full(directions, np.nan)
    evidence = np.zeros(directions, dtype=np.int64)
    for votes in ranks:
        given = np.stack(list(votes.values()))
        open_ = evidence == 0
        for bit, vote in votes.items():
            evidence += np.where(open_ & (vote != 0), bit, 0)
        agreed = given.min(axis=0) * given.max(axis=0) >= 0
        at = np.where(open_ & agreed & given.any(axis=0), given.sum(axis=0) > 0, at)
        evidence += np.where(open_ & ~agreed, Placed.CONTRADICTION, 0)
    guess = guess & (evidence == 0)
    beyond = first_ttl == 0
    at = np.where(guess & ~beyond, 0.0, at)
    evidence += np.where(guess & beyond, Placed.CONTRADICTION | Placed.TTL, 0)
    return at, evidence


def _mostly(sent_by: IntArray, marked: IntArray, directions: int) -> IntArray:
    """Tell whether most packets of each half have a mark: 1, 0, or -1 if it has no packets."""
    packets = np.bincount(sent_by, minlength=directions)
    found = np.bincount(sent_by, marked != 0, directions) > _MOST * packets
    return np.where(packets > 0, found, -1)


def _vote(holds: IntArray) -> IntArray:
    """Vote for the one end for which something holds, if it does not for the other."""
    other = swap_directions(holds)
    return np.where(
        (holds == 1) & (other == 0), SENDER, np.where((holds == 0) & (other == 1), RECEIVER, 0)
    )


def _either(which: BoolArray) -> BoolArray:
    return which | swap_directions(which)

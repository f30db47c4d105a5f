"""Place the tap on a LAN, where times tell little, by what a path does to packets.

Each kind of evidence is a column of votes by direction: -1 places the tap at the data's sender, or
beside it, 1 at the receiver, 0 nowhere.

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

import numpy as np

from capture_analysis.columns import BoolArray, IntArray, Mark
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import FloatArray, Placed, swap_directions

SENDER, RECEIVER = -1, 1
# Frames of an ACK without options, on Ethernet: as its host makes it, and as a wire carries it.
_HEADERS, _OWN_BYTES, _PADDED_BYTES = 40, 54, 60
_MOST = 0.5  # of a half's packets


def place(block: Block, times: IntArray, guess: BoolArray) -> tuple[FloatArray, IntArray]:
    """Place the tap by the evidence of a block, whose facts have the sizes.

    Args:
        block: the first packets.
        times: the votes of times, by direction.
        guess: directions whose tap counts as at the sender if nothing tells.

    Returns: the place, by direction, 0, 1 or NaN, and bits of Placed.
    """
    lane = (block.packets.flow.astype(np.int64) << 1) | block.packets.half
    marks, directions = block.packets.marks, len(block.facts)
    empty = block.packets.payload_bytes == 0
    unfilled = _mostly(lane[empty], marks[empty] & Mark.UNFILLED, directions)
    first_ttl = _mostly(lane, marks & Mark.FIRST_TTL, directions)
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


def _mostly(lane: IntArray, marked: IntArray, directions: int) -> IntArray:
    """Tell whether most packets of each half have a mark: 1, 0, or -1 if it has no packets."""
    packets = np.bincount(lane, minlength=directions)
    found = np.bincount(lane, marked != 0, directions) > _MOST * packets
    return np.where(packets > 0, found, -1)


def _vote(holds: IntArray) -> IntArray:
    """Vote for the one end for which something holds, if it does not for the other."""
    other = swap_directions(holds)
    return np.where(
        (holds == 1) & (other == 0), SENDER, np.where((holds == 0) & (other == 1), RECEIVER, 0)
    )


def _either(which: BoolArray) -> BoolArray:
    return which | swap_directions(which)

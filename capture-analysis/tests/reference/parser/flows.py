"""Which connection each packet belongs to.

Only a few packets of a batch can add a connection or say something new of one: the first of each
direction, SYNs, and the first of the other direction behind a SYN. They are looked at one by one,
in order; the others take their connection from the last of those before them.
"""

from dataclasses import dataclass

import numpy as np
from capture_analysis.columns import FLAG_ACK, FLAG_SYN, FLOW, NO_SCALE, FlowTable, IntArray
from numpy.typing import NDArray

from reference.parser.frames import Column
from reference.parser.limits import MOST_FLOWS

UintArray = NDArray[np.uint64]

_WORDS = 5  # of 64 bits: two addresses, both ports, version and protocol


@dataclass(frozen=True)
class Segments:
    """What decides on connections: columns of shape (n,), addresses (n, 2)."""

    version: Column
    protocol: Column
    source: UintArray
    destination: UintArray
    source_port: Column
    destination_port: Column
    time_ns: IntArray
    seq: Column
    flags: Column
    mss: Column
    window_scale: Column

    def __len__(self) -> int:
        return len(self.seq)


class Connections:
    """The connections of a capture, as they come to be known."""

    def __init__(self) -> None:
        self._rows = np.zeros(64, dtype=FLOW)
        self._count = 0
        # Of both ends: the latest connection between them, and whether its source is the higher.
        self._latest: dict[bytes, tuple[int, bool]] = {}

    @property
    def table(self) -> FlowTable:
        """A copy of what is known."""
        return FlowTable(self._rows[: self._count].copy())

    def place(self, segments: Segments) -> tuple[IntArray, IntArray]:
        """Connection and half of each packet, shape (n,).

        Shorter if there is no room for the connection of the first that is missing.
        """
        words, is_higher = _both_ends(segments)
        representative, pair = _distinct(words)
        telling = _telling(segments, pair, is_higher)
        names = {row: words[row].tobytes() for row in representative.tolist()}
        flow = np.zeros(len(telling), dtype=np.int64)
        source_is_higher = np.zeros(len(telling), dtype=np.bool_)
        for number, row in enumerate(telling.tolist()):
            ends = names[int(representative[pair[row]])]
            known = self._look_at(segments, row, ends, higher=bool(is_higher[row]))
            if known is None:
                telling, pair, is_higher = telling[:number], pair[:row], is_higher[:row]
                break
            flow[number], source_is_higher[number] = known
        rows = len(pair)
        order = np.argsort(pair[telling], kind="stable")
        before = np.searchsorted(
            (pair[telling] * rows + telling)[order], pair * rows + np.arange(rows), side="right"
        )
        deciding = order[before - 1]
        return flow[deciding], (is_higher ^ source_is_higher[deciding]).astype(np.int64)

    def _look_at(
        self, segments: Segments, row: int, ends: bytes, *, higher: bool
    ) -> tuple[int, bool] | None:
        """The connection of one packet, which may be new; None if there is no room for it."""
        flags, seq = int(segments.flags[row]), int(segments.seq[row])
        known = self._latest.get(ends)
        if known is not None:
            flow, source_is_higher = known
            half = int(higher ^ source_is_higher)
            connection = self._rows[flow]
            opens = flags & (FLAG_SYN | FLAG_ACK) == FLAG_SYN and connection["base_seen"][half]
            base = int(connection["base"][half])
            # A SYN that data overtook is no other: what was seen begins with the byte behind it.
            late = not connection["syn_seen"][half] and base == (seq + 1) % 2**32
            if not opens or base == seq or late:
                _note(connection, segments, row, half)
                return known
        if self._count == MOST_FLOWS:
            return None
        if self._count == len(self._rows):
            self._rows = np.concatenate((self._rows, np.zeros_like(self._rows)))
        known = self._latest[ends] = self._count, higher
        connection = self._rows[self._count]
        self._count += 1
        _introduce(connection, segments, row)
        _note(connection, segments, row, half=0)
        return known


def _both_ends(segments: Segments) -> tuple[UintArray, NDArray[np.bool_]]:
    """Shape (n, 5): the ends of each packet, the lower first; and where the higher one sent it."""
    source, destination = segments.source, segments.destination
    source_port = segments.source_port.astype(np.uint64)
    destination_port = segments.destination_port.astype(np.uint64)
    is_higher = source_port > destination_port
    for word in (1, 0):
        differs = source[:, word] != destination[:, word]
        is_higher = np.where(differs, source[:, word] > destination[:, word], is_higher)
    words = np.empty((len(segments), _WORDS), dtype=np.uint64)
    turned = is_higher[:, np.newaxis]
    words[:, 0:2] = np.where(turned, destination, source)
    words[:, 2:4] = np.where(turned, source, destination)
    low = np.where(is_higher, destination_port, source_port)
    ports = low << np.uint64(16) | (source_port + destination_port - low)
    kind = segments.version.astype(np.uint64) << np.uint64(8) | segments.protocol.astype(np.uint64)
    words[:, 4] = ports << np.uint64(16) | kind
    return words, is_higher


def _distinct(words: UintArray) -> tuple[IntArray, IntArray]:
    """For each distinct row of (n, k) its first; and for each row the number of its like."""
    _, first, number = np.unique(_mixed(words), return_index=True, return_inverse=True)
    if not (words == words[first][number]).all():  # different ones were mixed into the same
        _, first, number = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return first, number.ravel()


def _mixed(words: UintArray) -> UintArray:
    """Shape (n,): a number for each row of (n, k), which others hardly ever have."""
    mixed = np.zeros(len(words), dtype=np.uint64)
    for word in words.T:
        mixed = (mixed ^ word) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _telling(segments: Segments, pair: IntArray, is_higher: NDArray[np.bool_]) -> IntArray:
    """Ascending, the packets that may say something new of a connection; see above."""
    count = len(pair)
    lane = pair * 2 + is_higher
    _, first = np.unique(lane, return_index=True)
    syn = np.flatnonzero(segments.flags & FLAG_SYN)
    opening = syn[segments.flags[syn] & FLAG_ACK == 0]
    by_lane = np.argsort(lane, kind="stable")
    keys = (lane * count + np.arange(count))[by_lane]
    answer = np.searchsorted(keys, (lane[opening] ^ 1) * count + opening)
    answer = by_lane[answer[answer < count]]
    return np.unique(np.concatenate((first, syn, answer)))


def _introduce(connection: np.void, segments: Segments, row: int) -> None:
    """What the first packet says of a connection, whose row is all 0."""
    for end in ("source", "destination"):
        address = getattr(segments, end)[row].astype(">u8")
        connection[end] = address.view(np.uint8)
        connection[f"{end}_port"] = getattr(segments, f"{end}_port")[row]
    connection["first_ns"] = segments.time_ns[row]
    connection["window_scale"] = NO_SCALE
    connection["version"] = segments.version[row]
    connection["protocol"] = segments.protocol[row]


def _note(connection: np.void, segments: Segments, row: int, half: int) -> None:
    """What the first packet of a half, and its SYNs, say."""
    syn = bool(segments.flags[row] & FLAG_SYN)
    if not connection["base_seen"][half]:
        connection["base"][half] = segments.seq[row]
        connection["base_seen"][half] = 1
        connection["syn_seen"][half] = syn
    if syn and not connection["mss"][half]:
        connection["mss"][half] = segments.mss[row]
    if syn and connection["window_scale"][half] == NO_SCALE:
        connection["window_scale"][half] = segments.window_scale[row]

"""The connection of each packet.

Only a few packets of a batch can add a connection or a fact of one: the first of each direction,
SYNs, the first of the other direction behind a SYN, and all between ends that were seen in several
VLANs. They are looked at one by one, in order; the others take their connection from the last of
those before them.
"""

from dataclasses import dataclass

import numpy as np
from capture_analysis.columns import FLAG_ACK, FLAG_SYN, IntArray
from capture_analysis.flow_table import FLOW, NO_SCALE, TCP, FlowTable, Seen
from numpy.typing import NDArray

from reference.parser.frames import Column
from reference.parser.limits import MOST_FLOWS, MOST_VLANS

UintArray = NDArray[np.uint64]

_WORDS = 5  # of 64 bits: two addresses, both ports, version and protocol


@dataclass(frozen=True)
class Segments:
    """The fields that decide on connections: columns of shape (n,), addresses (n, 2)."""

    version: Column
    protocol: Column
    vlans: IntArray
    source: UintArray
    destination: UintArray
    source_port: Column
    destination_port: Column
    time_ns: IntArray
    seq: Column
    ack: Column
    flags: Column
    mss: Column
    window_scale: Column

    def __len__(self) -> int:
        return len(self.seq)


class Connections:
    """The connections of a capture, as they become known."""

    def __init__(self) -> None:
        self._rows = np.zeros(64, dtype=FLOW)
        self._count = 0
        # For both ends: the latest connection between them, or several in different VLANs, each
        # with whether its source is the higher.
        self._latest: dict[bytes, list[tuple[int, bool]]] = {}

    @property
    def table(self) -> FlowTable:
        """Return a copy of the table."""
        return FlowTable(self._rows[: self._count].copy())

    def place(self, segments: Segments) -> tuple[IntArray, IntArray]:
        """Return connection and half of each packet, shape (n,).

        The result is shorter if there is no room for the connection of the next packet.
        """
        words, is_higher = _both_ends(segments)
        representative, pair = _distinct(words)
        names = {row: words[row].tobytes() for row in representative.tolist()}
        vlans = segments.vlans[representative]
        several = np.bincount(pair, segments.vlans != vlans[pair], len(vlans)) > 0
        for n, (name, vlan) in enumerate(zip(names.values(), vlans.tolist(), strict=True)):
            latest = self._latest.get(name, [])
            several[n] |= any(_vlans(self._rows[flow]) != vlan for flow, _ in latest)
        telling = _telling(segments, pair, is_higher)
        telling = np.union1d(telling, np.flatnonzero(several[pair]))
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
        """Return the connection of one packet, perhaps a new one; None without room for it."""
        flags, seq = int(segments.flags[row]), int(segments.seq[row])
        latest = self._latest.setdefault(ends, [])
        known = self._in_vlans(segments, row, latest, higher=higher)
        if known is not None:
            flow, source_is_higher = known
            half = int(higher ^ source_is_higher)
            connection = self._rows[flow]
            seen, syn_seen = _seen(connection, half)
            opens = flags & (FLAG_SYN | FLAG_ACK) == FLAG_SYN and seen
            base = int(connection["base"][half])
            # A SYN that data overtook opens no other connection: the data seen begins behind it.
            late = not syn_seen and base == (seq + 1) % 2**32
            if not opens or base == seq or late:
                _note(connection, segments, row, half)
                return known
        if self._count == MOST_FLOWS:
            return None
        if self._count == len(self._rows):
            self._rows = np.concatenate((self._rows, np.zeros_like(self._rows)))
        if known is not None:
            latest.remove(known)
        known = self._count, higher
        latest.append(known)
        connection = self._rows[self._count]
        self._count += 1
        _introduce(connection, segments, row)
        _note(connection, segments, row, half=0)
        return known

    def _in_vlans(
        self, segments: Segments, row: int, latest: list[tuple[int, bool]], *, higher: bool
    ) -> tuple[int, bool] | None:
        """Find the connection of a packet among those of its ends, by VLAN and numbers."""
        for known in latest:
            if _vlans(self._rows[known[0]]) == segments.vlans[row]:
                return known
        for known in reversed(latest):
            if _follows(self._rows[known[0]], segments, row, int(higher ^ known[1])):
                return known
        return latest[-1] if len(latest) >= MOST_VLANS else None


def _vlans(connection: np.void) -> int:
    return int.from_bytes(connection["vlans"].tobytes(), "little")


def _seen(connection: np.void, half: int) -> tuple[bool, bool]:
    """Tell whether a packet and a SYN of a half were seen."""
    seen = int(connection["seen"]) >> half
    return bool(seen & Seen.HALF), bool(seen & Seen.SYN)


def _follows(connection: np.void, segments: Segments, row: int, half: int) -> bool:
    """Tell whether a packet's numbers are near the first of a connection in another VLAN."""
    if segments.protocol[row] != TCP or connection["seen"] & Seen.IN_OTHER_VLANS:
        return True
    first = connection["base"].astype(np.int64)
    flags = segments.flags[row]
    (sent, _), (answered, _) = _seen(connection, half), _seen(connection, 1 - half)

    def away(number: int, base: int) -> int:
        return abs((int(number) - int(base) + 2**31) % 2**32 - 2**31)

    if sent and away(segments.seq[row], first[half]) > (0 if flags & FLAG_SYN else 2**24):
        return False
    if flags & FLAG_ACK and answered:
        return away(segments.ack[row], first[1 - half]) <= 2**24
    return sent


def _both_ends(segments: Segments) -> tuple[UintArray, NDArray[np.bool_]]:
    """Return each packet's ends, the lower first, (n, 5), and a mask: the higher one sent it."""
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
    """Return the first of each distinct row of (n, k), and for each row its number."""
    _, first, number = np.unique(_mixed(words), return_index=True, return_inverse=True)
    if not (words == words[first][number]).all():  # two rows got one hash
        _, first, number = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return first, number.ravel()


def _mixed(words: UintArray) -> UintArray:
    """Return a nearly unique number for each row of (n, k), shape (n,)."""
    mixed = np.zeros(len(words), dtype=np.uint64)
    for word in words.T:
        mixed = (mixed ^ word) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _telling(segments: Segments, pair: IntArray, is_higher: NDArray[np.bool_]) -> IntArray:
    """Return, ascending, the packets that may add a connection or a fact of one."""
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
    """Take the facts of a connection from its first packet; its row is all 0."""
    for end in ("source", "destination"):
        address = getattr(segments, end)[row].astype(">u8")
        connection[end] = address.view(np.uint8)
        connection[f"{end}_port"] = getattr(segments, f"{end}_port")[row]
    connection["first_ns"] = segments.time_ns[row]
    connection["window_scale"] = NO_SCALE
    connection["version"] = segments.version[row]
    connection["protocol"] = segments.protocol[row]
    _set_vlans(connection, int(segments.vlans[row]))


def _set_vlans(connection: np.void, vlans: int) -> None:
    connection["vlans"] = np.frombuffer(vlans.to_bytes(3, "little"), np.uint8)


def _note(connection: np.void, segments: Segments, row: int, half: int) -> None:
    """Take the facts of a half from its first packet, and from its SYNs."""
    syn = bool(segments.flags[row] & FLAG_SYN)
    if not _seen(connection, half)[0]:
        connection["base"][half] = segments.seq[row]
        connection["seen"] |= (Seen.HALF | syn * Seen.SYN) << half
    if syn and not connection["mss"][half]:
        connection["mss"][half] = segments.mss[row]
    if syn and connection["window_scale"][half] == NO_SCALE:
        connection["window_scale"][half] = segments.window_scale[row]
    if _vlans(connection) != segments.vlans[row]:
        connection["seen"] |= Seen.IN_OTHER_VLANS
        if not _vlans(connection):
            _set_vlans(connection, int(segments.vlans[row]))

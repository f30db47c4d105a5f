"""The connection of each packet."""

import numpy as np
from capture_analysis.columns import FLAG_ACK, FLAG_SYN
from capture_analysis.flow_table import FLOW, NO_SCALE, TCP, FlowTable, Seen

from reference.parser.headers import Found

_MOST_VLANS = 64  # number of connections between the same ends that VLANs distinguish

Known = tuple[int, bool]  # a connection's number, and whether its source is the higher end


class Connections:
    """The connections of a capture, as they become known."""

    def __init__(self) -> None:
        self._rows = np.zeros(64, dtype=FLOW)
        self._count = 0
        # For both ends: the latest connection between them, or several in different VLANs.
        self._latest: dict[tuple[object, ...], list[Known]] = {}

    @property
    def table(self) -> FlowTable:
        """Return a copy of the table."""
        return FlowTable(self._rows[: self._count].copy())

    def place(self, packet: Found, time_ns: int) -> tuple[int, int]:
        """Return connection and direction of a packet, perhaps of a new connection."""
        source = packet.source, packet.source_port
        destination = packet.destination, packet.destination_port
        higher = source > destination
        ends = *sorted((source, destination)), packet.version, packet.protocol
        latest = self._latest.setdefault(ends, [])
        known = self._find(packet, latest, higher=higher)
        if known is not None:
            flow, source_is_higher = known
            direction = int(higher ^ source_is_higher)
            connection = self._rows[flow]
            seen, syn_seen = _seen(connection, direction)
            opens = packet.flags & (FLAG_SYN | FLAG_ACK) == FLAG_SYN and seen
            base = int(connection["base"][direction])
            # A SYN that data overtook opens no other connection: the data seen begins behind it.
            late = not syn_seen and base == (packet.seq + 1) % 2**32
            if not opens or base == packet.seq or late:
                _note(connection, packet, direction)
                return flow, direction
            latest.remove(known)
        if self._count == len(self._rows):
            self._rows = np.concatenate((self._rows, np.zeros_like(self._rows)))
        latest.append((self._count, higher))
        connection = self._rows[self._count]
        for end in ("source", "destination"):
            connection[end] = np.frombuffer(getattr(packet, end).to_bytes(16), np.uint8)
            connection[f"{end}_port"] = getattr(packet, f"{end}_port")
        connection["first_ns"], connection["window_scale"] = time_ns, NO_SCALE
        connection["version"], connection["protocol"] = packet.version, packet.protocol
        _set_vlans(connection, packet.vlans)
        _note(connection, packet, direction=0)
        self._count += 1
        return self._count - 1, 0

    def _find(self, packet: Found, latest: list[Known], *, higher: bool) -> Known | None:
        """Find the connection of a packet among those of its ends, by VLAN and numbers."""
        for known in latest:
            if _vlans(self._rows[known[0]]) == packet.vlans:
                return known
        for known in reversed(latest):
            if _follows(self._rows[known[0]], packet, int(higher ^ known[1])):
                return known
        return latest[-1] if len(latest) >= _MOST_VLANS else None


def _vlans(connection: np.void) -> int:
    return int.from_bytes(connection["vlans"].tobytes(), "little")


def _set_vlans(connection: np.void, vlans: int) -> None:
    connection["vlans"] = np.frombuffer(vlans.to_bytes(3, "little"), np.uint8)


def _seen(connection: np.void, direction: int) -> tuple[bool, bool]:
    """Tell whether a packet and a SYN of a direction were seen."""
    seen = int(connection["seen"]) >> direction
    return bool(seen & Seen.HALF), bool(seen & Seen.SYN)


def _follows(connection: np.void, packet: Found, direction: int) -> bool:
    """Tell whether a packet's numbers are near the first of a connection in another VLAN."""
    if packet.protocol != TCP or connection["seen"] & Seen.IN_OTHER_VLANS:
        return True
    (sent, _), (answered, _) = _seen(connection, direction), _seen(connection, 1 - direction)

    def away(number: int, of_direction: int) -> int:
        return abs((number - int(connection["base"][of_direction]) + 2**31) % 2**32 - 2**31)

    if sent and away(packet.seq, direction) > (0 if packet.flags & FLAG_SYN else 2**24):
        return False
    if packet.flags & FLAG_ACK and answered:
        return away(packet.ack, 1 - direction) <= 2**24
    return sent


def _note(connection: np.void, packet: Found, direction: int) -> None:
    """Take the facts of a direction from its first packet, and from its SYNs."""
    syn = bool(packet.flags & FLAG_SYN)
    if not _seen(connection, direction)[0]:
        connection["base"][direction] = packet.seq
        connection["seen"] |= (Seen.HALF | syn * Seen.SYN) << direction
    if syn and not connection["mss"][direction]:
        connection["mss"][direction] = packet.mss
    if syn and connection["window_scale"][direction] == NO_SCALE:
        connection["window_scale"][direction] = packet.window_scale
    if _vlans(connection) != packet.vlans:
        connection["seen"] |= Seen.IN_OTHER_VLANS
        if not _vlans(connection):
            _set_vlans(connection, packet.vlans)

"""A second parser, which reads one frame after the other; the one in C must equal it."""

import numpy as np
from capture_analysis.columns import FLAG_ACK, FLAG_SYN, Mark, Packets
from capture_analysis.flow_table import FLOW, NO_SCALE, TCP, FlowTable, Seen
from capture_analysis.reading.parsing import Counts
from numpy.typing import NDArray

from reference.parser.headers import Found, pass_pktap, read_packet
from reference.parser.records import (
    ChainBrokenError,
    Frame,
    LeftOutError,
    PcapngRecords,
    PcapRecords,
    open_records,
)

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


_WARNINGS = {
    "options_cut": Mark.OPTIONS_CUT,
    "length_guessed": Mark.LENGTH_GUESSED,
    "length_beyond": Mark.LENGTH_BEYOND,
}


class PlainParser:
    """The parser in Python; Parser in parsing.py describes its methods."""

    def __init__(self, *, every_protocol: bool = False, inside: bool = False) -> None:
        self._every_protocol, self._inside = every_protocol, inside
        self.counts = Counts()
        self._connections = Connections()
        self._records: PcapRecords | PcapngRecords | None = None
        self._last_ns: int = np.iinfo(np.int64).min
        self._trouble: str | None = None  # the reason why the next record cannot be found
        self._over = False  # nothing more can be read then
        self._damaged_at = 0
        self.damage: str | None = None

    @property
    def connections(self) -> int:
        """The number of connections so far."""
        return len(self.flows)

    @property
    def flows(self) -> FlowTable:
        """The table of connections so far."""
        return self._connections.table

    @property
    def format(self) -> str:
        """The name of the file's format."""
        return self._records.format if self._records else ""

    @property
    def link_types(self) -> list[int]:
        """The link types of the interfaces so far."""
        return self._records.link_types if self._records else []

    @property
    def broken(self) -> str | None:
        """The sentence on damage that ends the reading; None if there is none."""
        return self._trouble if self._over else None

    def parse(
        self, data: NDArray[np.uint8], columns: Packets, row: int, *, last: bool = False
    ) -> tuple[int, int]:
        """Read the packets of a chunk into columns, from a row on."""
        begin = 0
        if self._records is None:
            self._records = open_records(data[:24].tobytes())
            begin = self._records.position if self._records else 0
        if (records := self._records) is None:
            return 0, row
        content, offset = data.data, records.position - begin
        while not self._over:
            if not self._trouble:
                row = self._read_records(content, offset, columns, row)
                whole = row == len(columns) or records.position - offset == len(data)
                if self._over or (not self._trouble and (not last or whole)):
                    break
            found = self._pass_damage(content[records.position - offset :], last=last)
            if not found or self._trouble:
                break
        self.counts.other_blocks = records.other_blocks
        return records.position - offset, row

    def _read_records(self, content: memoryview, offset: int, columns: Packets, row: int) -> int:
        """Read all whole records, until the columns are full; return the next free row."""
        records = self._records
        assert records is not None
        try:
            while row < len(columns):
                length, frame = records.read(content[records.position - offset :])
                if not length:
                    break
                records.position += length
                if frame:
                    records.frames += 1
                    row += self._add(frame, columns, row)
        except ChainBrokenError as error:
            self._trouble, self._over = str(error), records.final
        self._damaged_at = records.position
        return row

    def _pass_damage(self, content: memoryview, *, last: bool) -> bool:
        """Skip to the next likely record; return False if the file was cut off here."""
        records = self._records
        assert records is not None
        begins = records.position == self._damaged_at
        for at in range(begins, len(content)):
            likely = records.likely(content, at, self._last_ns, last=last)
            if likely is not False:
                break
        else:
            at, likely = len(content), False if last else None
        if not likely and not self._trouble:
            return False
        if likely:
            cut = "claims more bytes than the file has"
            inside = f"record {records.frames + 1} at byte {records.position} {cut}"
            self.damage = self.damage or self._trouble or inside
            self.counts.damages += 1
            self.counts.damaged_bytes += records.position + at - self._damaged_at
            self._trouble = None
        self._over = likely is False
        records.position += at
        return True

    def _add(self, frame: Frame, columns: Packets, row: int) -> bool:
        """Count a frame; write the row of its packet, and return True, if it has one."""
        counts = self.counts
        counts.frames += 1
        try:
            pass_pktap(frame)
            frame_bytes = frame.bytes
            found = read_packet(
                frame, counts, every_protocol=self._every_protocol, inside=self._inside
            )
        except LeftOutError as reason:
            setattr(counts, str(reason), getattr(counts, str(reason)) + 1)
            return False
        flow, direction = self._connections.place(found, frame.time_ns)
        values = vars(found) | {
            "time_ns": frame.time_ns,
            "frame_bytes": frame_bytes,
            "flow": flow,
            "frame": counts.frames,
            "interface": frame.interface,
            "half": direction,
        }
        for name, column in vars(columns).items():
            column[row] = values[name]
        counts.packets += 1
        counts.backward += frame.time_ns < self._last_ns
        self._last_ns = frame.time_ns
        counts.fraction_beyond += frame.fraction_beyond
        for name, mark in _WARNINGS.items():
            setattr(counts, name, getattr(counts, name) + bool(found.marks & mark))
        return True

"""A parser in numpy; the one in C must equal it.

Records are walked one by one, because each gives the place of the next; everything else is done for
all frames of a batch at once, layer by layer: frames without TCP meet their fate on the way.
"""

import numpy as np
from capture_analysis.columns import Mark, Packets
from capture_analysis.flow_table import UDP, FlowTable
from capture_analysis.reading.parsing import PCAP_HEADER_BYTES, Counts, not_a_capture
from numpy.typing import NDArray

from reference.parser.flows import Connections, Segments
from reference.parser.frames import Cursor, Fate, Frames
from reference.parser.ip import Datagrams, find_transport
from reference.parser.limits import MOST_FLOWS
from reference.parser.link import find_ip, pass_pktap
from reference.parser.pcap import PcapRecords
from reference.parser.pcapng import PcapngRecords
from reference.parser.transport import OF_CONNECTIONS, OF_PACKETS, UDP_BYTES, read_transport
from reference.parser.tunnels import MOST_TUNNELS, inside


class NumpyParser:
    """The parser in Python; Parser in parsing.py describes its methods."""

    def __init__(self, *, every_protocol: bool = False, inside: bool = False) -> None:
        self._every_protocol, self._inside = every_protocol, inside
        self.counts = Counts()
        self._connections = Connections()
        self._records: PcapRecords | PcapngRecords | None = None
        self._last_ns = np.array([np.iinfo(np.int64).min])
        self._no_room: str | None = None
        self._over = False  # nothing more can be read
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
        found = self._records.broken if self._records and self._over else None
        return self._no_room or found

    def parse(
        self, data: NDArray[np.uint8], columns: Packets, row: int, *, last: bool = False
    ) -> tuple[int, int]:
        """Read the packets of a chunk into columns, from a row on."""
        taken = self._open(data)
        if (records := self._records) is None:
            return 0, row
        capacity = len(columns)
        while not self.broken:
            if not records.broken:
                frames, length = records.walk(data[taken:], capacity - row)
                row = self._add(data[taken:], frames, columns, row)
                taken += length
                self._damaged_at = records.position
                self._over = records.final
                if self.broken or (length and not records.broken):
                    continue
                if not records.broken and (not last or row == capacity or taken == len(data)):
                    break
            skipped = self._pass_damage(data.data[taken:], last=last)
            taken += skipped or 0
            if skipped is None or records.broken:
                break
        self.counts.other_blocks = records.other_blocks
        return taken, row

    def _pass_damage(self, content: memoryview, *, last: bool) -> int | None:
        """Skip to the next likely record; None if the file was cut off here."""
        records = self._records
        assert records is not None
        begins = records.position == self._damaged_at
        for at in range(begins, len(content)):
            likely = records.likely(content, at, int(self._last_ns[0]), last=last)
            if likely is not False:
                break
        else:
            at, likely = len(content), False if last else None
        if not likely and not records.broken:
            return None
        if likely:
            cut = "claims more bytes than the file has"
            inside = f"record {records.frames + 1} at byte {records.position} {cut}"
            self.damage = self.damage or records.broken or inside
            self.counts.damages += 1
            self.counts.damaged_bytes += records.position + at - self._damaged_at
            records.broken = None
        self._over = likely is False
        records.position += at
        return at

    def _open(self, data: NDArray[np.uint8]) -> int:
        """Find the file's format, unless it is known; return the number of bytes that takes.

        Raises: AnalysisError if it does not start like a capture.
        """
        if self._records is not None:
            return 0
        header = data[:PCAP_HEADER_BYTES].tobytes()
        self._records = PcapngRecords.open(header)
        if self._records is not None or len(header) < PCAP_HEADER_BYTES:
            return 0
        self._records = PcapRecords.open(header)
        if self._records is None:
            raise not_a_capture(header)
        return PCAP_HEADER_BYTES

    def _add(self, data: NDArray[np.uint8], frames: Frames, columns: Packets, row: int) -> int:
        """Write the packets among some frames and count the others; return the next free row."""
        pass_pktap(Cursor.at_start(data, frames))
        frame_bytes = frames.bytes.copy()
        for depth in range(MOST_TUNNELS + 1):
            cursor = Cursor.at_start(data, frames)
            version, vlans = find_ip(cursor)
            datagrams = find_transport(cursor.left(), version, every_protocol=self._every_protocol)
            if self._every_protocol or not self._enter(cursor, datagrams, depth):
                break
        header = read_transport(cursor.left(), datagrams)
        rows = header["row"]
        flow, half = self._connections.place(
            Segments(
                version=version[rows],
                protocol=datagrams.protocol[rows],
                vlans=vlans[rows],
                source=datagrams.source[rows],
                destination=datagrams.destination[rows],
                time_ns=frames.time_ns[rows],
                **{name: header[name] for name in OF_CONNECTIONS},
            )
        )
        fate = frames.fate
        if len(flow) < len(rows):
            fate = fate[: rows[len(flow)]]
            self._no_room = (
                f"frame {self.counts.frames + len(fate) + 1} begins connection"
                f" {MOST_FLOWS + 1}, for which there is no room"
            )
            rows, header = rows[: len(flow)], header[: len(flow)]
        written = columns.where(slice(row, row + len(rows)))
        for name, values in {
            **{name: header[name] for name in OF_PACKETS},
            "time_ns": frames.time_ns[rows],
            "frame_bytes": frame_bytes[rows],
            "flow": flow,
            "frame": self.counts.frames + rows + 1,
            "ip_id": datagrams.ip_id[rows],
            "interface": frames.interface[rows],
            "half": half,
            "marks": datagrams.marks[rows] | header["marks"],
        }.items():
            getattr(written, name)[:] = values
        self.counts.fraction_beyond += int(np.count_nonzero(frames.fraction_beyond[rows]))
        self._count(fate, written)
        return row + len(rows)

    def _enter(self, cursor: Cursor, datagrams: Datagrams, depth: int) -> bool:
        """Move frames to the content of their tunnels; return whether any was moved."""
        frames, entered = cursor.frames, {}
        for row in np.flatnonzero((frames.fate == Fate.NOT_TCP) & ~datagrams.later).tolist():
            end = int(frames.start[row] + frames.captured[row])
            place = min(int(cursor.place[row]), end)
            found = inside(cursor.data[place:end].tobytes(), int(datagrams.protocol[row]))
            if found is None:
                if datagrams.protocol[row] == UDP and end - place < UDP_BYTES:
                    frames.fate[row] = Fate.TOO_SHORT
                continue
            name, offset, link_type = found
            if not depth:
                counted = getattr(self.counts, f"tunnels_{name}")
                setattr(self.counts, f"tunnels_{name}", counted + 1)
            entered[row] = place + offset - int(frames.start[row]), link_type
        if not self._inside or depth == MOST_TUNNELS:
            return False
        for row, (offset, link_type) in entered.items():
            if offset > frames.captured[row]:
                frames.fate[row] = Fate.TOO_SHORT
                continue
            frames.fate[row] = Fate.PACKETS
            frames.original[row] = frames.bytes[row] - offset
            frames.start[row] += offset
            frames.captured[row] -= offset
            frames.link_type[row] = link_type
        return bool(entered)

    def _count(self, fate: NDArray[np.uint8], packets: Packets) -> None:
        """Count some frames, and the warnings on the packets among them."""
        counts = self.counts
        counts.frames += len(fate)
        for each, number in zip(Fate, np.bincount(fate, minlength=len(Fate)), strict=True):
            name = each.name.lower()
            setattr(counts, name, getattr(counts, name) + int(number))
        times = np.concatenate((self._last_ns, packets.time_ns))
        counts.backward += int(np.count_nonzero(times[1:] < times[:-1]))
        self._last_ns = times[-1:]
        counts.options_cut += int(np.count_nonzero(packets.marks & Mark.OPTIONS_CUT))
        counts.length_guessed += int(np.count_nonzero(packets.marks & Mark.LENGTH_GUESSED))
        counts.length_beyond += int(np.count_nonzero(packets.marks & Mark.LENGTH_BEYOND))

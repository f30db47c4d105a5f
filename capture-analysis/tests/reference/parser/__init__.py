"""A second parser, which reads one frame after the other; the one in C must equal it."""

import numpy as np
from capture_analysis.columns import Mark, Packets
from capture_analysis.flow_table import FlowTable
from capture_analysis.reading.parsing import Counts
from numpy.typing import NDArray

from reference.parser.connections import Connections
from reference.parser.frames import Frame, LeftOutError
from reference.parser.headers import pass_pktap, read_packet
from reference.parser.records import ChainBrokenError, PcapngRecords, PcapRecords, open_records

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

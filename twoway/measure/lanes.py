"""Packets by lane: the number of a connection's direction, as data or ACKs of a sender."""

from functools import partial
from io import SEEK_END
from tempfile import SpooledTemporaryFile, gettempdir
from typing import Any, NamedTuple

import numpy as np
from capture_analysis.columns import COLUMN_TYPES, IntArray, Lazy, Packets
from capture_analysis.errors import AnalysisError
from numpy.typing import NDArray

# More bytes of a run's captures at hosts wait on disk.
_IN_MEMORY_BYTES = 1 << 25


def numbers_of(packets: Packets) -> NDArray[np.uint32]:
    """Compute each packet's lane: twice its flow, plus its half; shape (n,)."""
    return np.asarray(2 * packets.flow.astype(np.uint32) + packets.half.astype(np.uint32))


class Lanes:
    """The rows of each lane, found once for all.

    Args:
        lane: shape (n,), the lane of each row.

    Attributes:
        order: shape (n,), the rows by lane; those of a lane ascend.
        ends: shape (k+1,), the place in `order` at which each of k lanes begins, and the end.
    """

    def __init__(self, lane: NDArray[np.uint32]) -> None:
        # numpy sorts 16 bits by radix, in a tenth of the time.
        short = np.uint16 if lane.max(initial=0) < 1 << 16 else np.uint32
        self.order = np.argsort(lane.astype(short), kind="stable").astype(np.uint32)
        self.ends = np.concatenate(([0], np.cumsum(np.bincount(lane))))

    def rows(self, *lanes: int) -> IntArray:
        """List the rows of some lanes, ascending."""
        known = [each for each in lanes if each < len(self.ends) - 1]
        parts = [self.order[self.ends[each] : self.ends[each + 1]] for each in known]
        if len(parts) == 1:
            return parts[0].astype(np.int64)
        return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))


class _Stored(NamedTuple):
    """The place of a capture in a file.

    Attributes:
        ends: see Lanes.
        starts: where each column begins in the file, and its type.
        values: the columns of one value, which are not in the file.
    """

    ends: IntArray
    starts: dict[str, tuple[int, np.dtype[Any]]]
    values: dict[str, IntArray]


class PacketFile:
    """The packets of captures by lane, in a temporary file.

    Metrics read those of one connection at a time, so that long captures need not fit memory.
    """

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115 - closed with its owner
        self._stored: dict[str, _Stored] = {}

    def __contains__(self, interface: str) -> bool:
        return interface in self._stored

    def add(self, interface: str, packets: Packets) -> None:
        """Store the packets of an interface's capture.

        Raises: AnalysisError if the temporary folder is full.
        """
        rows = Lanes(numbers_of(packets))
        self._stored[interface] = stored = _Stored(rows.ends, {}, {})
        for name in (*COLUMN_TYPES, "keys"):
            column = packets.key() if name == "keys" else getattr(packets, name)
            if column.strides == (0,):
                stored.values[name] = column
                continue
            stored.starts[name] = self._file.seek(0, SEEK_END), column.dtype
            try:
                self._file.write(column[rows.order].data)
            except OSError as error:
                raise AnalysisError(
                    f"{gettempdir()}: {error.strerror}\n\nhint: TMPDIR names another folder"
                ) from error

    def packets_of(self, interface: str, *directions: int) -> Packets:
        """Return an interface's packets of some lanes in time order, as int64, read when used."""
        stored = self._stored[interface]
        known = [each for each in directions if each < len(stored.ends) - 1]
        packets = Lazy.from_function(partial(self._read, stored, known))
        if len(known) < 2:
            return packets
        return packets.where(np.argsort(packets.time_ns, kind="stable"))

    def _read(self, stored: _Stored, directions: list[int], name: str) -> IntArray:
        spans = [(int(stored.ends[each]), int(stored.ends[each + 1])) for each in directions]
        if name in stored.values:
            count = sum(end - begin for begin, end in spans)
            return np.broadcast_to(stored.values[name][:1].astype(np.int64), (count,))
        start, kind = stored.starts[name]
        parts = []
        for begin, end in spans:
            self._file.seek(start + begin * kind.itemsize)
            content = self._file.read((end - begin) * kind.itemsize)
            parts.append(np.frombuffer(content, kind).astype(np.int64))
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([np.zeros(0, np.int64), *parts])

"""Open a capture file and read it in chunks of packets."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from capture_analysis.columns import Packets, compact_chunks, empty_columns
from capture_analysis.errors import AnalysisError
from capture_analysis.flow_table import FLOW, FlowTable
from capture_analysis.reading.byte_source import STANDARD_INPUT, Buffer, ByteSource
from capture_analysis.reading.capture_warnings import Tunnels, warnings_of
from capture_analysis.reading.datagrams import NO_DATAGRAMS, Datagrams
from capture_analysis.reading.parsing import (
    PCAP_HEADER_BYTES,
    PCAPNG_HEADER_BYTES,
    PCAPNG_MAGIC,
    Counts,
    Parser,
    not_a_capture,
)

# Packets per chunk: the rows that `match` makes of more would not fit a core's cache.
CHUNK_PACKETS = 1 << 15

# Ethernet, IPv4 and TCP without options: a run's captures must keep at least this of a frame.
_LEAST_KEPT_BYTES = 54

# A connection takes 1.9 kB, even a single SYN, and 3 kB with data: a million take 3 GB.
CONNECTION_BYTES = 3000
MOST_CONNECTIONS = 1_000_000
LIMIT = "CAPTURE_ANALYSIS_CONNECTIONS"
# The memory that the system, and a container by control groups version 2, has left.
MEMORY_OF_SYSTEM = Path("/proc/meminfo")
MEMORY_OF_GROUP = Path("/sys/fs/cgroup")


class Capture:
    """A capture being read; `flows` and `counts` grow as `chunks` advances.

    Args:
        path: the file, also one compressed by gzip, xz or zstd; "-" is standard input.
        every_protocol: see Parser.
        inside: True to read the TCP in tunnels besides the TCP outside.

    Attributes:
        damage: a sentence if the file is cut off or damaged, so that packets may be missing.
    """

    def __init__(self, path: Path, *, every_protocol: bool = False, inside: bool = False) -> None:
        self.path = path
        self._every_protocol = every_protocol
        self._tunnels = self._asked = Tunnels.ASKED_FOR if inside else Tunnels.LEFT_OUT
        self.damage: str | None = None
        self._compression: str | None = None
        self._parser: Parser | None = None

    @property
    def flows(self) -> FlowTable:
        """The connections seen so far."""
        return self._parser.flows if self._parser else FlowTable(np.zeros(0, dtype=FLOW))

    @property
    def counts(self) -> Counts:
        """Counts of the frames so far, by their fate."""
        return self._parser.counts if self._parser else Counts()

    @property
    def datagrams(self) -> Datagrams:
        """The UDP flows seen so far."""
        return self._parser.datagrams if self._parser else NO_DATAGRAMS

    @property
    def format(self) -> str:
        """The format, such as "pcapng, big-endian, gzip"; "" before chunks."""
        described = self._parser.format if self._parser else ""
        return f"{described}, {self._compression}" if self._compression else described

    @property
    def warnings(self) -> list[str]:
        """Sentences about defects and oddities of the file."""
        link_types = self._parser.link_types if self._parser else []
        damage = [self.damage] if self.damage else []
        return damage + warnings_of(self.counts, link_types, self.datagrams, self._tunnels)

    def chunks(self, packets: int = CHUNK_PACKETS) -> Iterator[Packets]:
        """Yield the packets from the file's start, at most `packets` at a time.

        If the file has TCP only in tunnels, that TCP is read; from standard input, only if
        `inside`.

        The columns are overwritten by the next chunk: copy values that must last.

        A damaged or truncated file is read as far as possible.

        Raises: AnalysisError if the file cannot be read, is not a capture or is a decompression
            bomb.
        """
        self._tunnels = self._asked
        yield from self._read(packets)
        left_out = self.counts.tunnels() and self._tunnels == Tunnels.LEFT_OUT
        if left_out and not self.counts.packets and self.path != STANDARD_INPUT:
            self._tunnels = Tunnels.NOTHING_ELSE
            yield from self._read(packets)

    def _read(self, packets: int) -> Iterator[Packets]:
        self.damage = None
        self._parser = parser = Parser(
            every_protocol=self._every_protocol, inside=self._tunnels != Tunnels.LEFT_OUT
        )
        columns, rows, most = empty_columns(packets), 0, _most_connections()
        try:
            with ByteSource(self.path) as source:
                self._compression = source.compression
                buffer = Buffer(source)
                self._check_start(buffer)
                last = False
                while True:
                    taken, rows = parser.parse(buffer.content, columns, rows, last=last)
                    buffer.take(taken)
                    _refuse_many(parser.connections, most)
                    if rows == packets:
                        yield columns
                        rows = 0
                    elif parser.broken or last:
                        break
                    else:
                        last = not buffer.fill()
                if not parser.format:
                    raise not_a_capture(buffer.content.tobytes())
                self.damage = self._damage_at(buffer)
        except AnalysisError as error:
            raise AnalysisError(f"{self.path}: {error}") from error
        if rows:
            yield columns.where(slice(0, rows))

    def _check_start(self, buffer: Buffer) -> None:
        """Fill the buffer for the first time.

        Raises: AnalysisError if the file is too short for a capture.
        """
        buffer.fill()
        head = buffer.content[:PCAP_HEADER_BYTES].tobytes()
        pcapng = head.startswith(PCAPNG_MAGIC)
        if len(head) < (PCAPNG_HEADER_BYTES if pcapng else PCAP_HEADER_BYTES):
            content = f"{len(head)} bytes is too short for a capture" if head else "is empty"
            raise AnalysisError(buffer.source.damage or content)

    def _damage_at(self, buffer: Buffer) -> str | None:
        """Describe the damage that was skipped and the defect at which reading ended."""
        assert self._parser is not None
        counts, left, sentences = self.counts, len(buffer.content), []
        if counts.damages:
            places = f"{counts.damages} damaged place{'s' if counts.damages > 1 else ''}"
            sentences.append(
                f"{self._parser.damage}: {places}, {counts.damaged_bytes} bytes skipped "
                "up to the next likely record; packets are missing"
            )
        if self._parser.broken:
            sentences.append(f"{self._parser.broken}; the rest was not read")
        elif left or buffer.source.damage:
            inside = f"ends inside record {counts.frames + 1} at byte {buffer.position}"
            sentences += [f"{inside}: {left} bytes left over"] if left else []
            sentences.append(buffer.source.damage or "the capture was cut off")
        return "; ".join(sentences) or None


def _most_connections() -> int:
    """Return the limit that the environment has; else as many as memory is left for."""
    given = os.environ.get(LIMIT)
    if given is None:
        return min([MOST_CONNECTIONS, *(left // CONNECTION_BYTES for left in _memory_left())])
    if not given.isdecimal():
        raise AnalysisError(f"{LIMIT}: must be a number of connections, got {given!r}")
    return int(given)


def _memory_left() -> Iterator[int]:
    """Yield the bytes that the system has left, and those that the container has, if known."""
    with suppress(OSError):
        for line in MEMORY_OF_SYSTEM.read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                yield 1024 * int(line.split()[1])
    with suppress(OSError, ValueError):  # no limit is "max"
        most, used = (
            int((MEMORY_OF_GROUP / name).read_text("ascii"))
            for name in ("memory.max", "memory.current")
        )
        yield max(most - used, 0)


def _refuse_many(connections: int, most: int) -> None:
    if connections > most:
        raise AnalysisError(
            f"more than {most} connections, and each takes 3 kB of memory; "
            f"{LIMIT} in the environment sets another limit"
        )


def read_capture(
    path: Path,
    *,
    every_protocol: bool = False,
    change: Callable[[Packets], Packets] = lambda packets: packets,
) -> tuple[Packets, FlowTable]:
    """Read a whole capture, its packets `compact_chunks`, with its connections.

    Args:
        path: the file.
        every_protocol: see Parser.
        change: see `compact_chunks`.

    Raises: AnalysisError if `Capture.chunks` does; if the file was truncated or is damaged; or if
        the capture kept too little of a frame to identify it.
    """
    capture = Capture(path, every_protocol=every_protocol)
    packets = compact_chunks(capture.chunks(), change)
    if capture.damage:
        raise AnalysisError(f"{path}: {capture.damage}")
    if capture.counts.too_short:
        raise AnalysisError(
            f"{path}: of {capture.counts.too_short} frames too little was kept to tell what they"
            f" are; the snapshot length must be at least {_LEAST_KEPT_BYTES}"
        )
    return packets, capture.flows

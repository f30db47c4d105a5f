"""Read the bytes of a file, compressed or not, or of standard input."""

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from capture_analysis.errors import AnalysisError
from capture_analysis.reading.compression import (
    MAGIC_BYTES,
    READ_BYTES,
    DamagedError,
    compression,
    read_compressed,
)
from capture_analysis.reading.parsing import LONGEST_RECORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


STANDARD_INPUT = Path("-")


class ByteSource:
    """The bytes of a capture, read once from first to last; a context manager.

    Args:
        path: the file; "-" is standard input.

    Attributes:
        watch: called now and then with the path and the number of bytes read; None for no calls.
        compression: gzip, xz or zstd; None if the file is not compressed.
        damage: a sentence if a compressed file turned out to be damaged, which ends it early.

    Raises: AnalysisError, without the file's name, if it cannot be opened or read.
    """

    watch: "ClassVar[Callable[[Path, int], None] | None]" = None

    def __init__(self, path: Path) -> None:
        self.damage: str | None = None
        self._path = path
        standard_input = path == STANDARD_INPUT
        try:
            # Unbuffered: bytes are read straight into the caller's memory.
            self._file = open(  # noqa: SIM115 # closed by __exit__
                0 if standard_input else path, "rb", buffering=0, closefd=not standard_input
            )
        except OSError as error:
            raise _unreadable(error) from error
        head = b""
        while len(head) < MAGIC_BYTES and (more := self._read(READ_BYTES)):
            head += more
        self.compression = compression(head)
        self._pieces: Iterator[bytes] = iter((head,))
        if self.compression:
            self._pieces = read_compressed(self.compression, head, self._read)
        self._piece = memoryview(b"")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def fill(self, room: NDArray[np.uint8]) -> int:
        """Write the next bytes into `room`; it stays partly empty only at the end.

        Returns: the number of bytes written.
        Raises: AnalysisError, without the file's name, if the file cannot be read, or if it is a
            decompression bomb.
        """
        filled = 0
        while filled < len(room):
            if not self._piece:
                self._piece = memoryview(self._next_piece())
            taken = self._piece[: len(room) - filled]
            if taken:
                room[filled : filled + len(taken)] = taken
                self._piece = self._piece[len(taken) :]
                filled += len(taken)
            elif self.compression or not (count := self._read_into(room[filled:])):
                break
            else:
                filled += count
        if ByteSource.watch and self._path.is_file():
            ByteSource.watch(self._path, self._file.tell())
        return filled

    def _next_piece(self) -> bytes:
        """Return the next piece; empty at the end, or if the rest is raw."""
        try:
            return next((piece for piece in self._pieces if piece), b"")
        except DamagedError as error:
            self.damage = str(error)
            return b""

    def _read(self, count: int) -> bytes:
        try:
            return self._file.read(count) or b""
        except OSError as error:
            raise _unreadable(error) from error

    def _read_into(self, room: NDArray[np.uint8]) -> int:
        try:
            return self._file.readinto(room.data) or 0
        except OSError as error:
            raise _unreadable(error) from error


def _unreadable(error: OSError) -> AnalysisError:
    return AnalysisError(f"cannot be read: {error.strerror}")


_BUFFER_BYTES = 1 << 20


class Buffer:
    """Bytes of a capture that were read and not parsed yet.

    Attributes:
        source: the origin of the bytes.
        content: shape (n,), a view of the bytes, valid until the next `fill`.
        position: the offset of the first of these bytes in the capture.
    """

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.position = 0
        self._memory = np.empty(_BUFFER_BYTES, dtype=np.uint8)
        self.content = self._memory[:0]

    def take(self, count: int) -> None:
        """Drop the first bytes, which have been parsed."""
        self.content = self.content[count:]
        self.position += count

    def fill(self) -> bool:
        """Read until the buffer is full; tell whether there was more.

        A full buffer is doubled.
        """
        kept = len(self.content)
        if kept == len(self._memory):
            if kept >= LONGEST_RECORD_BYTES:
                return False
            self._memory = np.empty(2 * kept, dtype=np.uint8)
        self._memory[:kept] = self.content
        count = self.source.fill(self._memory[kept:])
        self.content = self._memory[: kept + count]
        return count > 0

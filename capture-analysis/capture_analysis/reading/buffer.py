"""Keep the bytes of a capture that were read and not parsed yet."""

import numpy as np

from capture_analysis.reading.byte_source import ByteSource
from capture_analysis.reading.parsing import LONGEST_RECORD_BYTES

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

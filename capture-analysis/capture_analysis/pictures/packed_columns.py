"""Pack columns of numbers into few bytes.

A page unpacks them (templates/interactive.js).
"""

import base64
import gzip

import numpy as np

from capture_analysis.columns import IntArray
from capture_analysis.pictures.figure import FloatArray

# A column that becomes whole numbers with one of these divisors packs well: ns as seconds, bytes as
# megabytes.
DIVISORS = (1, 1_000, 1_000_000, 1_000_000_000)
# A quarter of the range in which float64 is exact: sums and differences of two are exact, too.
_LARGEST = 1 << 51
_VARINT_BYTES = 8
# Numbers that are packed at a time: each takes 150 bytes meanwhile.
_BLOCK = 1 << 13


class PackedColumns:
    """Columns one after the other, equal ones stored once; packing is lossless.

    A column that becomes whole numbers with one of DIVISORS is stored as differences between
    successive numbers. Differences 0, -1, 1, -2 ... become 0, 1, 2, 3 ..., in bytes of seven bits,
    least first, with the eighth bit set in all but a number's last byte. Any other column is
    little-endian float64, with divisor 0.

    Attributes:
        table: start, count of numbers and divisor of each column.
    """

    def __init__(self) -> None:
        self.table: list[tuple[int, int, int]] = []
        self._known: dict[tuple[bytes, int], int] = {}
        self._size = 0

    def add(self, values: FloatArray) -> int:
        """Add a column, shape (n,); return its number."""
        content, divisor = _packed(values)
        if (content, divisor) not in self._known:
            self._known[content, divisor] = len(self.table)
            self.table.append((self._size, len(values), divisor))
            self._size += len(content)
        return self._known[content, divisor]

    def text(self) -> str:
        """Return all columns as text: gzip, then base64."""
        return pack_bytes(b"".join(content for content, _ in self._known))


def pack_bytes(content: bytes) -> str:
    """Encode bytes as gzip and base64; equal bytes give equal texts."""
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()


def _packed(values: FloatArray) -> tuple[bytes, int]:
    for divisor in DIVISORS:
        scaled = values * divisor
        if not (np.abs(scaled) < _LARGEST).all():
            break
        whole = np.rint(scaled)
        if (whole / divisor == values).all():
            numbers = whole.astype(np.int64)
            numbers[1:] -= numbers[:-1].copy()
            blocks = range(0, len(numbers), _BLOCK)
            return b"".join(_varints(numbers[at : at + _BLOCK]) for at in blocks), divisor
    return values.astype("<f8").tobytes(), 0


def _varints(numbers: IntArray) -> bytes:
    unsigned = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    shifts = np.arange(_VARINT_BYTES, dtype=np.uint64) * np.uint64(7)
    groups = unsigned[:, None] >> shifts
    more = groups >= 128  # more bits are left for further bytes
    used = np.concatenate((np.ones((len(numbers), 1), dtype=np.bool_), more[:, :-1]), axis=1)
    septets = (groups & np.uint64(127)) | (more * np.uint64(128))
    return bytes(septets[used].astype(np.uint8))

"""Have the C library keep freed memory, which the next block of packets takes again.

Arrays of a block are a few hundred kilobytes. By default glibc gives such memory back to the
kernel when it is freed, and every page of the next array is a page fault: half of all time.
"""

import ctypes
import sys
from functools import cache

# <malloc.h>
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_MMAP_BYTES, _TRIM_BYTES = 32 << 20, 256 << 20


@cache
def keep_freed() -> None:
    """Set this process's allocator so, once; does nothing where the C library is not glibc."""
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)
            mallopt(_TRIM_THRESHOLD, _TRIM_BYTES)

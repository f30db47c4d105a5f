"""Make the C library keep freed memory for the next block.

Arrays of a block are a few hundred kilobytes. By default glibc returns such memory to the kernel
when it is freed, and every page of the next array is a page fault: half of all time.
"""

import ctypes
import sys
from functools import cache

# <malloc.h>
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_MMAP_BYTES, _TRIM_BYTES = 32 << 20, 256 << 20


@cache
def keep_freed() -> None:
    """Make this process's allocator keep freed memory; only with glibc."""
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)
            mallopt(_TRIM_THRESHOLD, _TRIM_BYTES)

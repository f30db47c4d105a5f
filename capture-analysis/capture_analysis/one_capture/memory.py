"""Freed memory: make the C library keep it for the next block, or return it to the system.

Arrays of a block are a few hundred kilobytes. By default glibc returns such memory to the kernel
when it is freed, and every page of the next array is a page fault: half of all time.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import cache

# <malloc.h>
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_MMAP_BYTES, _TRIM_BYTES = 32 << 20, 256 << 20


@cache
def keep_freed() -> None:
    """Make this process's allocator keep freed memory; only with glibc."""
    mallopt = _of_glibc("mallopt")
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)
        mallopt(_TRIM_THRESHOLD, _TRIM_BYTES)


def give_back() -> None:
    """Return this process's freed memory to the system; only with glibc."""
    trim = _of_glibc("malloc_trim")
    if trim is not None:
        trim(0)


def _of_glibc(name: str) -> Callable[..., int] | None:
    if sys.platform != "linux":
        return None
    found: Callable[..., int] | None = getattr(ctypes.CDLL(None), name, None)
    return found

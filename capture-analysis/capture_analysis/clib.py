"""Load the C library: clib/*.c, built into _clib.so at installation.

All work per packet is done in C. The modules that call the library by ctypes check the arguments
before they pass them on.
"""

import ctypes
import os
from functools import cache
from pathlib import Path

import numpy as np

from capture_analysis.columns import COLUMN_TYPES, IntArray, Packets
from capture_analysis.errors import AnalysisError

LIBRARY = Path(__file__).with_name("_clib.so")

_POINTER, _SIZE, _BOOL = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_bool
_INT64, _UINT64 = ctypes.c_int64, ctypes.c_uint64
_SIZE_POINTER = ctypes.POINTER(_SIZE)

# The result and the arguments of each function.
_PROTOTYPES = {
    "ca_parser_new": (_POINTER, [_UINT64, _BOOL, _BOOL]),
    "ca_parser_free": (None, [_POINTER]),
    "ca_parser_parse": (
        ctypes.c_int,
        [_POINTER, _POINTER, _SIZE, _BOOL, _POINTER, _SIZE, _SIZE_POINTER, _SIZE_POINTER],
    ),
    "ca_parser_counts": (_POINTER, [_POINTER]),
    "ca_parser_flows": (_POINTER, [_POINTER, _SIZE_POINTER]),
    "ca_parser_datagrams": (_POINTER, [_POINTER] * 4),
    "ca_parser_link_types": (_SIZE, [_POINTER, ctypes.POINTER(ctypes.c_uint32), _SIZE]),
    "ca_parser_format": (ctypes.c_char_p, [_POINTER]),
    "ca_parser_damage": (ctypes.c_char_p, [_POINTER]),
    "ca_parser_trouble": (ctypes.c_char_p, [_POINTER]),
    "ca_tracker_new": (_POINTER, []),
    "ca_tracker_free": (None, [_POINTER]),
    "ca_tracker_track": (ctypes.c_int, [_POINTER, _POINTER, _SIZE, _SIZE, _POINTER]),
    "ca_tracker_forgotten": (_POINTER, [_POINTER]),
    "ca_histogram_new": (_POINTER, [_UINT64]),
    "ca_histogram_free": (None, [_POINTER]),
    "ca_histogram_takes": (_BOOL, [_POINTER, _POINTER, _SIZE]),
    "ca_histogram_add": (_BOOL, [_POINTER, _POINTER, _POINTER, _SIZE]),
    "ca_histogram_add_bins": (_BOOL, [_POINTER, _POINTER, _SIZE]),
    "ca_histogram_bins": (_SIZE, [_POINTER, _POINTER]),
    "ca_order": (_SIZE, [_POINTER, _SIZE, _POINTER, _SIZE, _POINTER]),
    "ca_streaks_add": (_SIZE, [_POINTER, _SIZE, _INT64, _POINTER, _POINTER]),
    "ca_steps_sum": (None, [_POINTER, _POINTER, _INT64, _INT64, _POINTER]),
    "ca_steps_of_queue": (None, [_POINTER, _SIZE, _POINTER, _SIZE, _POINTER, _POINTER]),
    "ca_steps_last_to_empty": (_SIZE, [_POINTER, _SIZE, _INT64, _INT64, _POINTER]),
    "ca_tally_add": (None, [_POINTER] * 3),
    "ca_symptoms_add": (None, [_POINTER] * 2),
    "ca_standing_add": (None, [_POINTER] * 2),
    "ca_limits_add": (_INT64, [_POINTER] * 5),
    "ca_receiving_add": (_INT64, [_POINTER] * 4),
    "ca_match_rows": (_SIZE, [_POINTER] * 4 + [_SIZE, _POINTER]),
    "ca_match_join": (
        _SIZE,
        [_POINTER, _SIZE, _POINTER, _SIZE, _INT64, _UINT64, _POINTER, _POINTER],
    ),
    "ca_match_partners": (_BOOL, [_POINTER, _SIZE, _POINTER, _SIZE, _UINT64, _POINTER]),
}


class Columns(ctypes.Structure):
    """The addresses of the columns of `Packets`.

    Laid out as struct ca_columns in clib/parser.h.
    """

    _fields_ = [(name, ctypes.c_void_p) for name in COLUMN_TYPES]

    @classmethod
    def from_packets(cls, packets: Packets) -> "tuple[Columns, list[IntArray]]":
        """Return the columns' addresses, and the arrays that must outlive them.

        Raises: ValueError if the columns differ in length.
        """
        columns = [
            np.ascontiguousarray(getattr(packets, name), dtype=kind)
            for name, kind in COLUMN_TYPES.items()
        ]
        if any(column.shape != (len(packets),) for column in columns):
            raise ValueError("columns must be of one length")
        return cls(*(column.ctypes.data for column in columns)), columns


@cache
def load() -> ctypes.CDLL:
    """Return the C library; its functions release the GIL.

    Raises: AnalysisError if the library is missing or of another version of the package.
    """
    try:
        library = ctypes.CDLL(str(LIBRARY))
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        if "failed to map" in str(error):  # ld.so's message
            raise AnalysisError(
                f"the C library of capture-analysis finds no memory: {error}\n\n"
                "hint: allow more address space (ulimit -v)"
            ) from error
        raise AnalysisError(
            f"the C library of capture-analysis is missing, or of another version: {error}\n\n"
            "hint: install the package again, with a C compiler or from a wheel"
        ) from error
    return library


def random_bits() -> int:
    """Return 64 random bits, an unpredictable seed for hashes.

    The author of a capture cannot choose packets whose hashes collide.
    """
    return int.from_bytes(os.urandom(8))  # the module secrets does the same but takes 7 ms to load

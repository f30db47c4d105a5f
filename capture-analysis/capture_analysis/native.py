"""The parser in C: native/*.c, built into _native.so when the package is installed with a compiler.

Without that library, or with CAPTURE_ANALYSIS_NATIVE=0 in the environment, everything works by
numpy instead, several times slower and with the same results.
"""

import ctypes
import os
import weakref
from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import COLUMN_TYPES, FLOW, FlowTable, Packets
from capture_analysis.errors import AnalysisError
from capture_analysis.reading.parsing import PCAP_HEADER_BYTES, Counts, not_a_capture

SWITCH = "CAPTURE_ANALYSIS_NATIVE"
LIBRARY = Path(__file__).with_name("_native.so")

_NO_CAPTURE = 1  # of enum ca_status in native/parser.h


class _Columns(ctypes.Structure):
    """As struct ca_columns in native/parser.h."""

    _fields_ = [(name, ctypes.c_void_p) for name in COLUMN_TYPES]


class _Counts(ctypes.Structure):
    """As struct ca_counts in native/parser.h, whose order is that of Counts."""

    _fields_ = [(field.name, ctypes.c_uint64) for field in fields(Counts)]


_SIZE_POINTER = ctypes.POINTER(ctypes.c_size_t)

# Of each function its result and its arguments.
_PROTOTYPES = {
    "ca_parser_new": (ctypes.c_void_p, [ctypes.c_uint64]),
    "ca_parser_free": (None, [ctypes.c_void_p]),
    "ca_parser_parse": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.POINTER(_Columns),
            ctypes.c_size_t,
            _SIZE_POINTER,
            _SIZE_POINTER,
        ],
    ),
    "ca_parser_counts": (ctypes.POINTER(_Counts), [ctypes.c_void_p]),
    "ca_parser_flows": (ctypes.c_void_p, [ctypes.c_void_p, _SIZE_POINTER]),
    "ca_parser_link_types": (
        ctypes.c_size_t,
        [ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32), ctypes.c_size_t],
    ),
    "ca_parser_format": (ctypes.c_char_p, [ctypes.c_void_p]),
    "ca_parser_trouble": (ctypes.c_char_p, [ctypes.c_void_p]),
    "ca_tracker_new": (ctypes.c_void_p, []),
    "ca_tracker_free": (None, [ctypes.c_void_p]),
    "ca_tracker_track": (
        ctypes.c_int,
        [
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_size_t,
            ctypes.c_void_p,
        ],
    ),
    "ca_tracker_forgotten": (ctypes.c_void_p, [ctypes.c_void_p]),
    "ca_histogram_new": (ctypes.c_void_p, [ctypes.c_uint64]),
    "ca_histogram_free": (None, [ctypes.c_void_p]),
    "ca_histogram_takes": (
        ctypes.c_bool,
        [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t],
    ),
    "ca_histogram_add": (
        ctypes.c_bool,
        [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t],
    ),
    "ca_histogram_add_bins": (
        ctypes.c_bool,
        [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t],
    ),
    "ca_histogram_bins": (ctypes.c_size_t, [ctypes.c_void_p, ctypes.c_void_p]),
    "ca_order": (
        ctypes.c_size_t,
        [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_void_p,
        ],
    ),
    "ca_gather": (
        ctypes.c_bool,
        [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_size_t,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_void_p,
        ],
    ),
    "ca_runs_add": (
        ctypes.c_size_t,
        [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_int64,
            ctypes.c_void_p,
            ctypes.c_void_p,
        ],
    ),
    "ca_match_rows": (
        ctypes.c_size_t,
        [ctypes.c_void_p] * 4 + [ctypes.c_size_t, ctypes.c_void_p],
    ),
    "ca_match_join": (
        ctypes.c_size_t,
        [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_int64,
            ctypes.c_uint64,
            ctypes.c_void_p,
            ctypes.c_void_p,
        ],
    ),
}


@cache
def load() -> ctypes.CDLL:
    """The library, which lets other threads run while it works.

    Raises: AnalysisError if it is switched off, missing or of another version of the package.
    """
    if os.environ.get(SWITCH) == "0":
        raise AnalysisError(f"switched off by {SWITCH}=0")
    try:
        library = ctypes.CDLL(str(LIBRARY))
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise AnalysisError(f"no native parser: {error}") from error
    return library


def available() -> bool:
    """Whether there is the library, and it is not switched off."""
    try:
        load()
    except AnalysisError:
        return False
    return True


def random_bits() -> int:
    """64 bits that a capture's writer cannot know, to seed hash tables with."""
    return int.from_bytes(os.urandom(8))  # what secrets does, which takes 7 ms to load


class NativeParser:
    """A Parser (parsing.py) in C, for one capture.

    Raises: AnalysisError if there is no library (`available`).
    """

    def __init__(self) -> None:
        self._library = load()
        # A capture's writer cannot know the seed, and so cannot make connections collide.
        self._parser = self._library.ca_parser_new(random_bits())
        if not self._parser:
            raise MemoryError
        weakref.finalize(self, self._library.ca_parser_free, self._parser)
        self._columns: Packets | None = None
        self._pointers = _Columns()

    @property
    def counts(self) -> Counts:
        """What became of the frames so far."""
        counts = self._library.ca_parser_counts(self._parser).contents
        return Counts(*(getattr(counts, field.name) for field in fields(Counts)))

    @property
    def flows(self) -> FlowTable:
        """The connections so far, a copy."""
        count = ctypes.c_size_t()
        at = self._library.ca_parser_flows(self._parser, ctypes.byref(count))
        rows = np.empty(count.value, dtype=FLOW)
        ctypes.memmove(rows.ctypes.data, at, rows.nbytes)
        return FlowTable(rows)

    @property
    def format(self) -> str:
        """Such as "pcap, little-endian, ns"; empty until the first bytes were seen."""
        return str(self._library.ca_parser_format(self._parser).decode())

    @property
    def link_types(self) -> list[int]:
        """Those declared so far, ascending."""
        count = self._library.ca_parser_link_types(self._parser, None, 0)
        types = (ctypes.c_uint32 * count)()
        self._library.ca_parser_link_types(self._parser, types, count)
        return list(types)

    @property
    def broken(self) -> str | None:
        """Why the chain of records cannot be followed any more; None while it can."""
        return str(self._library.ca_parser_trouble(self._parser).decode()) or None

    def parse(self, data: NDArray[np.uint8], columns: Packets, row: int) -> tuple[int, int]:
        """Take whole records from the front of `data` into `columns` from `row` on.

        Returns: bytes taken, and the next free row.
        Raises: AnalysisError if the first bytes are no capture file's.
        """
        if columns is not self._columns:
            self._pointers = _pointers(columns)
            self._columns = columns
        if data.dtype != np.uint8 or not data.flags.c_contiguous:
            raise ValueError("data must be contiguous bytes")
        taken, following = ctypes.c_size_t(), ctypes.c_size_t(row)
        status = self._library.ca_parser_parse(
            self._parser,
            data.ctypes.data,
            len(data),
            self._pointers,
            len(columns),
            taken,
            following,
        )
        if status == _NO_CAPTURE:
            raise not_a_capture(data[:PCAP_HEADER_BYTES].tobytes())
        return taken.value, following.value


def _pointers(columns: Packets) -> _Columns:
    """Where the columns lie.

    Raises: ValueError if they are not what the library writes: it would write elsewhere.
    """
    addresses = []
    for name, kind in COLUMN_TYPES.items():
        column = getattr(columns, name)
        if column.dtype != kind or column.shape != (len(columns),):
            raise ValueError(f"{name}: must be {kind} of shape ({len(columns)},)")
        if not (column.flags.c_contiguous and column.flags.writeable):
            raise ValueError(f"{name}: must be contiguous and writable")
        addresses.append(column.ctypes.data)
    return _Columns(*addresses)

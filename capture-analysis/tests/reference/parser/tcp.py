"""TCP headers (RFC 9293) and the options that are used here."""

from dataclasses import dataclass

import numpy as np
from capture_analysis.columns import BoolArray, IntArray, Mark
from capture_analysis.flow_table import NO_SCALE, SCALE_CUT
from numpy.typing import NDArray

from reference.parser.frames import Bytes, Cursor, Fate, headers_at
from reference.parser.limits import MOST_WINDOW_SCALE

_END, _NOP, _MSS, _WINDOW_SCALE, _SACK, _TIMESTAMPS, _MPTCP = 0, 1, 2, 3, 5, 8, 30
_ACCECN = 172, 174
_FLAGS = 0x1FF
_LEAST_OPTION_BYTES = 2  # kind and length

HEADER = np.dtype(
    [
        ("source_port", ">u2"),
        ("destination_port", ">u2"),
        ("seq", ">u4"),
        ("ack", ">u4"),
        ("offset_flags", ">u2"),
        ("window", ">u2"),
        ("checksum", ">u2"),
        ("urgent", ">u2"),
    ]
)
_UINT8 = np.dtype([("value", "u1")])
_UINT16 = np.dtype([("value", ">u2")])
_TWO_UINT32 = np.dtype([("first", ">u4"), ("second", ">u4")])
_TIMESTAMPS_ALONE = np.dtype([("start", ">u4"), ("value", ">u4"), ("echo", ">u4")])
_TIMESTAMPS_ALONE_START = _NOP << 24 | _NOP << 16 | _TIMESTAMPS << 8 | 10


@dataclass
class Options:
    """The options of segments; columns of shape (n,) as in Packets and FLOW."""

    ts_value: NDArray[np.uint32]
    ts_echo: NDArray[np.uint32]
    sack_left: NDArray[np.uint32]
    sack_right: NDArray[np.uint32]
    mss: NDArray[np.uint16]
    window_scale: NDArray[np.uint8]
    marks: NDArray[np.uint16]

    @classmethod
    def none_yet(cls, count: int) -> "Options":
        """Make options for a number of segments without any."""
        return cls(
            ts_value=np.zeros(count, dtype=np.uint32),
            ts_echo=np.zeros(count, dtype=np.uint32),
            sack_left=np.zeros(count, dtype=np.uint32),
            sack_right=np.zeros(count, dtype=np.uint32),
            mss=np.zeros(count, dtype=np.uint16),
            window_scale=np.full(count, NO_SCALE, dtype=np.uint8),
            marks=np.zeros(count, dtype=np.uint16),
        )


def whole_headers(segments: Cursor, left_bytes: IntArray) -> Cursor:
    """Keep segments whose header was captured, except options, and agrees with IP's length.

    Args:
        segments: at their headers.
        left_bytes: IP's remaining length for all frames, shape (n,).
    """
    segments = segments.need(HEADER.itemsize)
    header_bytes = header_length(segments.read(HEADER))
    sound = (header_bytes >= HEADER.itemsize) & (header_bytes <= left_bytes[segments.rows])
    return segments.keep(sound, Fate.MALFORMED)


def header_length(headers: NDArray[np.void]) -> IntArray:
    """Return the bytes of headers, options included."""
    return (headers["offset_flags"] >> 12).astype(np.int64) * 4


def flags(headers: NDArray[np.void]) -> NDArray[np.uint16]:
    """The nine flags."""
    return (headers["offset_flags"] & _FLAGS).astype(np.uint16)


def read_options(segments: Cursor) -> Options:
    """Read the options of each segment, shape (k,), as far as they were captured.

    Args:
        segments: at their headers, of which the fixed part was captured.
    """
    options = Options.none_yet(len(segments))
    data, start = segments.data, segments.place[segments.rows]
    at = start + HEADER.itemsize
    end = start + header_length(segments.read(HEADER))
    captured_end = np.minimum(end, start + segments.captured())
    rows = _read_usual(data, options, at, end, captured_end)
    while len(rows):
        # These segments have another option, which may not have been captured.
        there = at[rows] < captured_end[rows]
        kind = np.where(there, data[np.minimum(at[rows], len(data) - 1)], _NOP)
        following = np.minimum(at[rows] + 1, captured_end[rows] - 1)
        length = np.where(kind == _NOP, 1, data[following]).astype(np.int64)
        whole = there & ((kind == _NOP) | (length >= _LEAST_OPTION_BYTES))
        whole &= at[rows] + length <= captured_end[rows]
        options.marks[rows[~whole & (kind != _END)]] |= np.uint8(Mark.OPTIONS_CUT)
        going_on = whole & (kind != _END)
        rows = rows[going_on]
        _take(data, options, rows, at[rows])
        at[rows] += length[going_on]
        rows = rows[at[rows] < end[rows]]
    cut = (options.marks & Mark.OPTIONS_CUT) != 0
    options.window_scale[cut & (options.window_scale == NO_SCALE)] = SCALE_CUT
    return options


def _read_usual(
    data: Bytes, options: Options, at: IntArray, end: IntArray, captured_end: IntArray
) -> IntArray:
    """Read options that are only time stamps behind two NOPs; return the other rows."""
    alone = (end - at == _TIMESTAMPS_ALONE.itemsize) & (captured_end == end)
    rows = np.flatnonzero(alone)
    header = headers_at(data, at[rows], _TIMESTAMPS_ALONE)
    usual = header["start"] == _TIMESTAMPS_ALONE_START
    rows, header = rows[usual], header[usual]
    options.ts_value[rows], options.ts_echo[rows] = header["value"], header["echo"]
    options.marks[rows] |= np.uint8(Mark.TIMESTAMPS)
    alone[alone] = usual
    return np.flatnonzero(~alone & (at < end))


def _take(data: Bytes, options: Options, rows: IntArray, at: IntArray) -> None:
    """Take one whole option of each of some rows; one of a wrong length does not count."""
    kind = data[at]
    length = data[np.minimum(at + 1, len(data) - 1)]

    def values(of: BoolArray, layout: np.dtype[np.void]) -> tuple[IntArray, NDArray[np.void]]:
        return rows[of], headers_at(data, at[of] + _LEAST_OPTION_BYTES, layout)

    which, pair = values((kind == _TIMESTAMPS) & (length == 10), _TWO_UINT32)
    options.ts_value[which], options.ts_echo[which] = pair["first"], pair["second"]
    options.marks[which] |= np.uint8(Mark.TIMESTAMPS)
    which, pair = values((kind == _SACK) & (length > 2) & (length % 8 == 2), _TWO_UINT32)
    options.sack_left[which], options.sack_right[which] = pair["first"], pair["second"]
    options.marks[which] |= np.uint8(Mark.SACK)
    which, one = values((kind == _MSS) & (length == 4), _UINT16)
    options.mss[which] = one["value"]
    which, one = values((kind == _WINDOW_SCALE) & (length == 3), _UINT8)
    options.window_scale[which] = np.minimum(one["value"], MOST_WINDOW_SCALE)
    options.marks[rows[kind == _MPTCP]] |= np.uint8(Mark.MPTCP)
    options.marks[rows[np.isin(kind, _ACCECN)]] |= np.uint16(Mark.ACCECN)

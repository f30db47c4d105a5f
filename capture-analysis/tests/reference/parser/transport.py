"""Payload of IP: TCP segments, and packets of other protocols, as rows of one layout."""

import numpy as np
from capture_analysis.columns import Mark
from capture_analysis.flow_table import NO_SCALE, TCP, UDP
from numpy.typing import NDArray

from reference.parser import tcp
from reference.parser.frames import Cursor, Fate
from reference.parser.ip import Datagrams

# The columns' values of a packet, and the fields that decide on connections.
OF_PACKETS = (
    *("payload_bytes", "seq", "ack", "ts_value", "ts_echo", "sack_left", "sack_right"),
    *("window", "flags"),
)
OF_CONNECTIONS = ("source_port", "destination_port", "seq", "ack", "flags", "mss", "window_scale")
_NAMES = dict.fromkeys(("row", *OF_PACKETS, *OF_CONNECTIONS, "marks"))
TRANSPORT = np.dtype([(name, "u2" if name == "marks" else "i8") for name in _NAMES])

_PORTS = np.dtype([("source", ">u2"), ("destination", ">u2")])
_BYTE = np.dtype([("value", "u1")])
UDP_BYTES, _HASHED_BYTES = 8, 40
_FNV_START, _FNV_FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


def read_transport(frames: Cursor, datagrams: Datagrams) -> NDArray[np.void]:
    """Return the packets among some frames, shape (k,) of type TRANSPORT, in order.

    Args:
        frames: at the payload of IP.
        datagrams: IP's fields of all frames.
    """
    is_segment = ((datagrams.protocol == TCP) & ~datagrams.later)[frames.rows]
    segments = tcp.whole_headers(frames.where(is_segment), datagrams.left_bytes)
    found = np.concatenate(
        (_segments(segments, datagrams), _others(frames.where(~is_segment), datagrams))
    )
    return found[np.argsort(found["row"], kind="stable")]


def _segments(segments: Cursor, datagrams: Datagrams) -> NDArray[np.void]:
    header, options = segments.read(tcp.HEADER), tcp.read_options(segments)
    found = np.zeros(len(segments), dtype=TRANSPORT)
    found["row"] = segments.rows
    for name in ("source_port", "destination_port", "seq", "ack", "window"):
        found[name] = header[name]
    for name in ("ts_value", "ts_echo", "sack_left", "sack_right", "mss", "window_scale", "marks"):
        found[name] = getattr(options, name)
    found["flags"] = tcp.flags(header)
    unfilled = header["checksum"] == 0
    unfilled |= header["checksum"] % np.uint16(0xFFFF) == _pseudo_header(segments, datagrams)
    found["marks"] |= unfilled * np.uint16(Mark.UNFILLED)
    found["payload_bytes"] = datagrams.left_bytes[segments.rows] - tcp.header_length(header)
    begin = segments.place[segments.rows] + tcp.header_length(header)
    left = segments.captured() - tcp.header_length(header)
    for row, (at, bytes_left) in enumerate(
        zip(begin, np.minimum(left, found["payload_bytes"]), strict=True)
    ):
        if bytes_left > 0:
            found["marks"][row] |= _tls(segments.data[at : at + min(bytes_left, 12)].tobytes())
    return found


def _tls(payload: bytes) -> int:
    """Return the mark of the record of TLS with which a payload begins, or 0."""
    if payload.startswith(b"\x14\3") and payload[3:5] == b"\0\1":
        payload = payload[6:]
    if len(payload) < 6 or payload[1] != 3 or payload[2] > 4:
        return 0
    hellos = {1: Mark.CLIENT_HELLO, 2: Mark.SERVER_HELLO}
    if payload[0] == 23:
        return int(Mark.ENCRYPTED)
    return int(hellos.get(payload[5], 0)) if payload[0] == 22 else 0


def _pseudo_header(segments: Cursor, datagrams: Datagrams) -> NDArray[np.uint64]:
    """Sum the words of the header that TCP's checksum covers, modulo 2^16 - 1."""
    rows, word = segments.rows, np.uint64(0xFFFF)
    total = datagrams.left_bytes[rows].astype(np.uint64) & word
    total += np.uint64(TCP)
    for address in (datagrams.source[rows], datagrams.destination[rows]):
        for shift in range(0, 64, 16):
            total += (address >> np.uint64(shift) & word).sum(axis=1)
    return total % word


def _others(frames: Cursor, datagrams: Datagrams) -> NDArray[np.void]:
    """Return packets of other protocols, and fragments, with a hash of their first bytes."""
    has_ports = (datagrams.protocol == UDP) & ~datagrams.later
    too_short = has_ports[frames.rows] & (frames.captured() < UDP_BYTES)
    frames = frames.keep(~too_short, Fate.TOO_SHORT)
    header_bytes = np.where(has_ports[frames.rows], UDP_BYTES, 0)
    frames = frames.keep(datagrams.left_bytes[frames.rows] >= header_bytes, Fate.MALFORMED)
    found = np.zeros(len(frames), dtype=TRANSPORT)
    rows = found["row"] = frames.rows
    found["payload_bytes"] = datagrams.left_bytes[rows] - np.where(has_ports[rows], UDP_BYTES, 0)
    found["window_scale"] = NO_SCALE
    udp = has_ports[rows]
    ports = frames.where(udp).read(_PORTS) if udp.any() else np.zeros(0, _PORTS)
    found["source_port"][udp] = ports["source"]
    found["destination_port"][udp] = ports["destination"]
    mixed = np.full(len(rows), _FNV_START)
    length = np.minimum(np.minimum(frames.captured(), datagrams.left_bytes[rows]), _HASHED_BYTES)
    for at in range(_HASHED_BYTES):
        there = length > at
        if there.any():
            byte = frames.where(there).read(_BYTE, at)["value"].astype(np.uint64)
            mixed[there] = (mixed[there] ^ byte) * _FNV_FACTOR
    found["seq"], found["ack"] = mixed & np.uint64(0xFFFFFFFF), mixed >> np.uint64(32)
    return found

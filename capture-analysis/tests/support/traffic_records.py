"""Columns of packets as bytes of a capture: Ethernet, IPv4, TCP with time stamps and SACK."""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

SNAP_BYTES = 96
PLAIN_BYTES, SACK_BYTES, SYN_BYTES = 66, 78, 74  # of all headers, with the link's
FLAG_SYN = 2
HEAD_BYTES = 16
HEAD = {name: ("<u4", 4 * k) for k, name in enumerate(("s", "ns", "kept", "size"))}
# MSS 1460, SACK permitted, time stamps (filled in), no operation, window scale 7.
SYN_OPTIONS = bytes([2, 4, 5, 180, 4, 2, 8, 10, *bytes(8), 1, 3, 3, 7])

# name: type, offset behind the record's header
FRAME = {
    "macs": (">u8", 0),
    "more_mac": (">u4", 8),
    "ether_type": (">u2", 12),
    "version": ("u1", 14),
    "total_bytes": (">u2", 16),
    "ip_id": (">u2", 18),
    "fragment": (">u2", 20),
    "ttl": (">u2", 22),  # together with the protocol
    "checksum": (">u2", 24),
    "source": (">u4", 26),
    "destination": (">u4", 30),
    "source_port": (">u2", 34),
    "destination_port": (">u2", 36),
    "seq": (">u4", 38),
    "ack": (">u4", 42),
    "offset_flags": (">u2", 46),
    "window": (">u2", 48),
    "options": (">u4", 54),
    "ts_value": (">u4", 58),
    "ts_echo": (">u4", 62),
}


def file_header() -> bytes:
    """Return the bytes at the start of a classic file with times in ns."""
    return struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAP_BYTES, 1)


def records(packets: dict[str, NDArray[np.int64]], time_ns: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the bytes of the records of packets, one after the other.

    Args:
        packets: columns of the same length: source, destination (host numbers), source_port,
            destination_port, seq, ack, payload_bytes, flags, ip_id, ts_value, ts_echo,
            sack_left, sack_right.
        time_ns: of the capture.
    """
    width = HEAD_BYTES + SNAP_BYTES
    table = np.zeros((len(time_ns), width), dtype=np.uint8)
    sizes = _frames(_fields(table, FRAME, HEAD_BYTES), packets)
    kept = np.minimum(sizes, SNAP_BYTES)
    _options(table[:, HEAD_BYTES:], packets)
    head = _fields(table, HEAD, 0)
    seconds = time_ns // 1_000_000_000
    head["s"], head["ns"] = seconds, time_ns - seconds * 1_000_000_000
    head["kept"], head["size"] = kept, sizes
    lengths = HEAD_BYTES + kept
    whole: NDArray[np.uint8] = table[np.arange(width) < lengths[:, None]]
    return whole


def _fields(table: NDArray[np.uint8], layout: dict[str, Any], shift: int) -> NDArray[np.void]:
    """Return the same memory as a record array."""
    dtype = np.dtype(
        {
            "names": list(layout),
            "formats": [form for form, _ in layout.values()],
            "offsets": [shift + offset for _, offset in layout.values()],
            "itemsize": table.shape[1],
        }
    )
    view: NDArray[np.void] = table.view(dtype)[:, 0]
    return view


def _frames(frame: NDArray[np.void], packets: dict[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """Fill in the headers.

    Returns: the size of each frame on the wire.
    """
    syn = (packets["flags"] & FLAG_SYN) > 0
    headers = np.where(syn, SYN_BYTES, PLAIN_BYTES)
    headers[packets["sack_right"] != packets["sack_left"]] = SACK_BYTES
    sizes = headers + packets["payload_bytes"]
    ip_id = packets["ip_id"] & 0xFFFF
    frame["macs"] = 0x0200000000010200
    frame["more_mac"] = 2
    frame["ether_type"] = 0x0800
    frame["version"] = 0x45
    frame["total_bytes"] = sizes - 14
    frame["ip_id"] = ip_id
    frame["fragment"] = 0x4000
    frame["ttl"] = 0x4006
    for end in ("source", "destination"):
        frame[end] = 0x0A000000 | packets[end]
        frame[f"{end}_port"] = packets[f"{end}_port"]
    total = 0x4500 + 0x4000 + 0x4006 + 2 * 0x0A00 + (sizes - 14) + ip_id
    total += packets["source"] + packets["destination"]  # each below 2^16, so one word
    frame["checksum"] = 0xFFFF - ((total & 0xFFFF) + (total >> 16))
    frame["seq"] = packets["seq"] & 0xFFFFFFFF
    frame["ack"] = packets["ack"] & 0xFFFFFFFF
    frame["offset_flags"] = ((headers - 34) << 10) | packets["flags"]
    frame["window"] = np.where(syn, 64240, 8192)
    return sizes


def _options(frames: NDArray[np.uint8], packets: dict[str, NDArray[np.int64]]) -> None:
    """Fill in time stamps, and a SACK block behind them or the options of a SYN."""
    stamps = np.empty((len(frames), 2), dtype=">u4")
    stamps[:, 0] = packets["ts_value"] & 0xFFFFFFFF
    stamps[:, 1] = packets["ts_echo"] & 0xFFFFFFFF
    frames[:, 54:58] = (1, 1, 8, 10)
    frames[:, 58:66] = stamps.view(np.uint8)
    syn = np.flatnonzero(packets["flags"] & FLAG_SYN)
    frames[syn, 54:74] = np.frombuffer(SYN_OPTIONS, dtype=np.uint8)
    frames[syn, 62:70] = stamps[syn].view(np.uint8)
    sack = np.flatnonzero(packets["sack_right"] != packets["sack_left"])
    edges = np.empty((len(sack), 2), dtype=">u4")
    edges[:, 0] = packets["sack_left"][sack] & 0xFFFFFFFF
    edges[:, 1] = packets["sack_right"][sack] & 0xFFFFFFFF
    frames[sack, 66:70] = (1, 1, 5, 10)
    frames[sack, 70:78] = edges.view(np.uint8)

"""Small captures of frames made by scapy."""

from collections.abc import Iterable
from typing import Any

from hand_built import Frame, classic
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

# 2000-01-01 00:00:30 UTC, a time whose nanoseconds do not fit a float.
EPOCH_NS = 946_684_830_000_000_000


def tcp_frame(payload_bytes: int = 0, **fields: Any) -> Packet:
    """Make an Ethernet frame with TCP/IPv4.

    Args:
        payload_bytes: number of zeros in it.
        fields: `source`, `destination` and `ip_id` of IP; any other is scapy's name for a TCP one.
    """
    ip = IP(
        src=fields.pop("source", "10.0.1.2"),
        dst=fields.pop("destination", "10.0.2.2"),
        id=fields.pop("ip_id", 1),
    )
    frame = Ether() / ip / TCP(**{"sport": 40001, "dport": 5001, "flags": "A", **fields})
    return frame / Raw(bytes(payload_bytes)) if payload_bytes else frame


def answer_frame(payload_bytes: int = 0, **fields: Any) -> Packet:
    """Make a frame of the other end; arguments as of tcp_frame."""
    ends = {"source": "10.0.2.2", "destination": "10.0.1.2", "sport": 5001, "dport": 40001}
    return tcp_frame(payload_bytes, **(ends | fields))


def pcap(
    frames: Iterable[tuple[int, Any]],
    *,
    order: str = "<",
    nanoseconds: bool = True,
    snap_bytes: int = 65535,
    link_type: int = 1,
) -> bytes:
    """Make a capture file's content.

    Args:
        frames: pairs of time, ns since the epoch, and frame.
        order: byte order of its headers, `<` or `>`.
        nanoseconds: False to cut time stamps to microseconds.
        snap_bytes: bytes kept of each frame.
        link_type: as in the file header.
    """
    kept = (Frame.of(time_ns, bytes(frame), snap_bytes) for time_ns, frame in frames)
    return classic(kept, link_type, kind="ns" if nanoseconds else "us", order=order)

"""Our names for packets against Wireshark's and tcptrace's, on a connection with all kinds."""

import shutil
from pathlib import Path
from typing import Any

import agreement
import pytest
from pcap_files import EPOCH_NS, pcap, tcp_frame


def connection() -> bytes:
    """Make a capture with three kinds of retransmissions and a gap in the captured data."""
    frames: list[tuple[int, Any]] = []

    def send(at_us: int, payload: int = 0, **fields: Any) -> None:
        frame = tcp_frame(payload, ip_id=len(frames) + 1, window=500, **fields)
        frames.append((EPOCH_NS + at_us * 1000, frame))

    def answer(at_us: int, **fields: Any) -> None:
        ends: dict[str, Any] = {"source": "10.0.2.2", "destination": "10.0.1.2"}
        send(at_us, **ends, sport=5001, dport=40001, **fields)

    send(0, seq=0, flags="S")
    answer(10_000, seq=0, ack=1, flags="SA")
    send(10_010, seq=1, ack=1)
    for k in range(6):
        send(11_000 + k, 100, seq=1 + 100 * k, ack=1)
    answer(21_000, seq=1, ack=101)
    for k in range(4):
        answer(21_001 + k, seq=1, ack=101)
    send(21_010, 100, seq=101, ack=1)  # fast
    answer(31_000, seq=1, ack=601)
    send(331_000, 100, seq=501, ack=1)  # spurious
    send(340_000, 100, seq=601, ack=1)
    send(640_000, 100, seq=601, ack=1)  # time-out
    answer(650_000, seq=1, ack=701)
    answer(660_000, seq=1, ack=801)  # of data that the capture lacks
    return pcap(frames)


@pytest.mark.slow
def test_packets_are_named_as_by_tshark_and_tcptrace(tmp_path: Path) -> None:
    """Our names for packets are tshark's, and tcptrace counts as many retransmissions."""
    for program in ("tshark", "tcptrace"):
        if not shutil.which(program):
            pytest.skip(f"not installed: {program} (vm/install-packages test)")
    path = tmp_path / "a.pcap"
    path.write_bytes(connection())
    counts, again, theirs = agreement.compare(path)
    assert {word: counts[word, "both"] for word in agreement.WORDS} == {
        "sent again": 3,
        "fast": 1,
        "spurious": 1,
        "duplicate ACK": 4,
        "hole proved": 1,
    }
    assert not any(n for (_, who), n in counts.items() if who != "both")
    assert again == theirs == 3

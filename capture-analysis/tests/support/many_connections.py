"""Captures of many connections to one server, most fine and some in trouble."""

import argparse
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from hand_built import Frame, classic

SYN, RST, PSH, ACK, FIN = 2, 4, 8, 16, 1
# Packets of a connection whose round trip is 10 ms, near its client: time in ms, end, flags,
# first byte and payload of the end's data, and acknowledged bytes of the other's.
Packet = tuple[float, int, int, int, int, int]
_OPEN: Sequence[Packet] = [(0, 0, SYN, 0, 0, 0), (10, 1, SYN | ACK, 0, 0, 1), (10, 0, ACK, 1, 0, 1)]


def _answered(think_ms: float, *, again_ms: float = 0, late_ms: float = 0) -> list[Packet]:
    """Make a question, its answer after a time, and the close.

    Args:
        think_ms: time of the server.
        again_ms: time after which the question is sent again; 0 for none.
        late_ms: time by which all of it is late.
    """
    asked: list[Packet] = [(11, 0, PSH | ACK, 1, 200, 1)]
    if again_ms:
        asked.append((11 + again_ms, 0, PSH | ACK, 1, 200, 1))
    at = 21 + again_ms
    packets = [
        *(*_OPEN, *asked),
        (at, 1, ACK, 1, 0, 201),
        (at + think_ms, 1, PSH | ACK, 1, 1400, 201),
        (at + think_ms + 0.1, 0, FIN | ACK, 201, 0, 1401),
        (at + think_ms + 10, 1, FIN | ACK, 1401, 0, 202),
        (at + think_ms + 10.1, 0, ACK, 202, 0, 1402),
    ]
    return [(late_ms + at, *rest) for at, *rest in packets]  # type: ignore[misc]


SCRIPTS: Mapping[str, list[Packet]] = {
    "fine": _answered(3),
    "server": _answered(1000),
    "losses": _answered(3, again_ms=300),
    "refused": [_OPEN[0], (10, 1, RST | ACK, 0, 0, 1)],
    "no answer": [(at, 0, SYN, 0, 0, 0) for at in (0, 1000, 3000)],
    "connect": [_OPEN[0], *_answered(3, late_ms=1000)],
    "reset": [*_OPEN, (11, 0, PSH | ACK, 1, 200, 1), (22, 1, RST | ACK, 1, 0, 201)],
    "zero window": [
        *_answered(3)[:6],
        (24.1, 0, ACK, 201, 0, 1401),
        (524, 0, ACK, 201, 0, 1401),
        (534, 1, PSH | ACK, 1401, 1400, 201),
    ],
}
_BEGIN_NS = 1_700_000_000_000_000_000
_SHUT_MS = (24.05, 523)  # the client announces a window of 0


def write(path: Path, causes: Sequence[str], every_ms: float = 10) -> None:
    """Write a capture; its connections have some causes, and begin one after another.

    Args:
        path: the file.
        causes: the cause of each connection, of SCRIPTS.
        every_ms: time between the begins of two connections.
    """
    packets = sorted(
        (number * every_ms + at, number, sent)
        for number, cause in enumerate(causes)
        for at, *sent in SCRIPTS[cause]
    )
    frames = []
    for at_ms, number, (end, flags, seq, payload, ack) in packets:
        shut = _SHUT_MS[0] < at_ms - number * every_ms < _SHUT_MS[1]
        window = 0 if shut and causes[number] == "zero window" else 60_000
        frame = _frame(number, end, (flags, seq, payload, ack, window))
        frames.append(Frame(_BEGIN_NS + round(at_ms * 1e6), frame, len(frame) + payload))
    path.write_bytes(classic(frames, kind="ns"))


def _frame(number: int, end: int, sent: tuple[int, int, int, int, int]) -> bytes:
    flags, seq, payload, ack, window = sent
    client = (0xC6336400 + number // 20_000, 40_000 + number % 20_000)  # 198.51.100.0
    server = (0xC0000201, 443 if number % 3 else 8080)  # 192.0.2.1
    source, destination = (server, client) if end else (client, server)
    return (
        bytes(12)
        + struct.pack(">HBBHHHBBH", 0x0800, 0x45, 0, 40 + payload, number % 65536, 0, 64, 6, 0)
        + struct.pack(">II", source[0], destination[0])
        + struct.pack(">HHIIBBHHH", source[1], destination[1], seq, ack, 80, flags, window, 0, 0)
    )


def mixture(connections: int) -> list[str]:
    """Return causes: one connection in 40 waits for the server, the others are fine."""
    return ["server" if number % 40 == 7 else "fine" for number in range(connections)]


def main() -> None:
    """Write a capture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--connections", type=int, default=500)
    asked = parser.parse_args()
    write(asked.file, mixture(asked.connections))


if __name__ == "__main__":
    main()

"""A server that answers as its clients ask, and its clients.

    python3 ends.py server SECONDS    reads requests, one line of JSON each, and writes a line for
                                      each connection that ends in time: what its sender waited for
    python3 ends.py client HOST ASKS  connects, sends requests and reads the answers

The truth is the kernel's: every 5 ms TCP_INFO says whether data waits, and for what.
"""

import json
import signal
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from typing import Any

SAMPLE_S = 0.005
PORT = 80
CHUNK = bytes(1 << 16)
Ask = dict[str, Any]


def state(info: bytes, left: int) -> str:
    """Say what the sender's next data waits for.

    Args:
        info: TCP_INFO.
        left: bytes that the application has not written yet.
    """
    in_recovery = info[1] >= 3  # TCP_CA_Recovery, TCP_CA_Loss
    mss, unacked = struct.unpack_from("=II", info, 16)[0], struct.unpack_from("=I", info, 24)[0]
    cwnd, unsent = (struct.unpack_from("=I", info, at)[0] for at in (80, 144))
    window = struct.unpack_from("=I", info, 228)[0]
    if in_recovery:
        return "recovery"
    if not unsent:
        return "send buffer" if left else "application"
    if not window:
        return "zero window"
    if window < (unacked + 1) * mss:
        return "receive window"
    if unacked < cwnd and unsent < mss:
        return "Nagle"
    return "congestion window"


class Sampled(threading.Thread):
    """A thread that samples a connection until it is closed."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(daemon=True)
        self.sock, self.left, self.ended = sock, 0, False
        self.counts: dict[str, int] = {}

    def run(self) -> None:
        """Sample until the connection has ended."""
        while not self.ended:
            try:
                info = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
            except OSError:
                return
            if info[0] in (1, 8):  # established, close-wait
                waits = state(info, self.left)
                self.counts[waits] = self.counts.get(waits, 0) + 1
            time.sleep(SAMPLE_S)


def set_options(sock: socket.socket, options: Any) -> None:
    """Set options of a socket: pairs of level and number, with a value or a name."""
    for (level, option), value in options:
        sock.setsockopt(level, option, value.encode() if isinstance(value, str) else value)


def write(sock: socket.socket, sampled: Sampled, ask: Ask) -> None:
    """Send an answer, in pieces or for a time."""
    time.sleep(ask.get("think_s", 0))
    until_s = time.monotonic() + ask.get("for_s", 0)
    while time.monotonic() < until_s:
        sampled.left = len(CHUNK)
        sock.sendall(CHUNK)
        sampled.left = 0
    for number in range(ask.get("pieces", 1)):
        time.sleep(ask.get("gap_s", 0) if number else 0)
        sampled.left = ask.get("bytes", 0)
        sock.sendall(bytes(ask.get("bytes", 0)))
        sampled.left = 0


def answer(sock: socket.socket, peer: Any, end_s: float) -> None:
    """Serve one connection until a time of the clock."""
    sampled, requests = Sampled(sock), sock.makefile("rb")
    begun_s = None
    try:
        while True:
            sock.settimeout(max(end_s - time.monotonic(), 0.001))
            if not (line := requests.readline()):
                break
            ask = json.loads(line)
            if begun_s is None:
                begun_s = time.monotonic()
                set_options(sock, ask.get("options", ()))
                sampled.start()
            write(sock, sampled, ask)
    except OSError:
        pass
    # Data that still waits counts until it is acknowledged.
    while time.monotonic() < end_s:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
        if not (struct.unpack_from("=I", info, 24)[0] or struct.unpack_from("=I", info, 144)[0]):
            break
        time.sleep(SAMPLE_S)
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
    sampled.ended = True
    took_s = time.monotonic() - (begun_s or time.monotonic())
    acked = struct.unpack_from("=Q", info, 120)[0]
    again = struct.unpack_from("=I", info, 100)[0]
    found = {"client": peer, "took_s": took_s, "acked_bytes": acked, "again": again}
    sys.stdout.write(json.dumps(found | {"samples": sampled.counts}) + "\n")
    sys.stdout.flush()
    sock.close()


def serve(end_s: float) -> None:
    """Accept connections for ever; each is served until a time of the clock."""
    listener = socket.create_server(("", PORT), backlog=64)
    while True:
        sock, peer = listener.accept()
        threading.Thread(target=answer, args=(sock, peer, end_s), daemon=True).start()


def take(sock: socket.socket, count: int | None, ask: Ask) -> None:
    """Read an answer; stop reading once for a while if asked to."""
    stops = list(ask.get("stops", ()))
    got = 0
    while count is None or got < count:
        chunk = sock.recv(min(1 << 16, ask.get("reads", 1 << 16)))
        if not chunk:
            return
        got += len(chunk)
        if stops and got >= stops[0][0]:
            time.sleep(stops.pop(0)[1])
        elif "reads_s" in ask:
            time.sleep(ask["reads_s"])


def connect(host: str, ask: Ask) -> socket.socket:
    """Connect to the server."""
    sock = socket.socket()
    set_options(sock, ask.get("mine", ()))
    sock.connect((host, ask.get("port", PORT)))
    return sock


def ask_for(sock: socket.socket, asks: list[Ask]) -> None:
    """Send requests one after the other, each after the answer to the last."""
    for ask in asks:
        for _ in range(ask.get("times", 1)):
            time.sleep(ask.get("pause_s", 0))
            sock.sendall(json.dumps(ask).encode() + b" " * ask.get("request", 0) + b"\n")
            if "for_s" not in ask:
                take(sock, ask["bytes"] * ask.get("pieces", 1), ask)
    sock.shutdown(socket.SHUT_WR)
    take(sock, None, asks[-1])


if __name__ == "__main__":
    if sys.argv[1] == "server":
        serve(time.monotonic() + float(sys.argv[2]))
    else:
        given = json.loads(sys.argv[3])
        with suppress(OSError):  # refused, or not answered, or closed when the server's time ends
            ask_for(connect(sys.argv[2], given[0]), given)
        signal.pause()  # until the end of the run

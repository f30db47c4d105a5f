"""Hosts and cables, TCP connections between them, and the kernel's reports on them.

For programs that run in the guest as root. Each host is a network namespace; a cable's queue and
delay are a netem on the device that sends into it. Nothing is offloaded, so a segment is a packet.
"""

import contextlib
import ctypes
import fcntl
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MODULES = Path("/mnt/bin")
RUN = Path("/mnt/run")
# Size of an IP packet: a frame on a cable has 14 bytes more, 1000 in all.
MTU_BYTES = 986
SEGMENT_BYTES = MTU_BYTES - 40

_PORT = 5001
_BUFFER_BYTES = 1 << 26
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33  # linux/socket.h
_SIOCOUTQNSD = 0x894B
_INFO_BYTES = 232
# Layout of struct tcp_info: eight bytes, then words; the pacing rate is the first longer field.
_WORDS = {
    "unacked": 4,
    "sacked": 5,
    "rtt_us": 15,
    "ssthresh": 17,
    "cwnd": 18,
    "reordering": 20,
    "retransmitted": 23,
}
_PACING_AT = 104
_STATE_AT = 1

_libc = ctypes.CDLL(None, use_errno=True)


def command(line: str, host: str = "") -> str:
    """Run a command that must succeed, in a host's namespace if named; return its output."""
    words = [*(["ip", "netns", "exec", host] if host else []), *line.split()]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{line}: {done.stderr}"
    return done.stdout


def load(module: str, *parameters: str) -> None:
    """Insert one of our modules."""
    command(f"insmod {MODULES / module}.ko {' '.join(parameters)}")


@contextlib.contextmanager
def inside(host: str) -> Iterator[None]:
    """Enter a host's network namespace for the duration of a `with`."""
    with Path("/proc/self/ns/net").open() as home, Path(f"/run/netns/{host}").open() as there:
        assert _libc.setns(there.fileno(), 0) == 0
        try:
            yield
        finally:
            assert _libc.setns(home.fileno(), 0) == 0


def sysctl(host: str, name: str, value: str | int) -> None:
    """Set a sysctl of a host, or of the whole kernel if no host is named."""
    with inside(host) if host else contextlib.nullcontext():
        (Path("/proc/sys") / name.replace(".", "/")).write_text(str(value))


class Network:
    """Hosts, each named by a letter, and cables between them: "ar rb" is a - r - b.

    The device of a that leads to r is called a-r.
    """

    def __init__(self, cables: str) -> None:
        self.cables = [(cable[0], cable[1]) for cable in cables.split()]
        self.hosts = sorted({host for cable in self.cables for host in cable})
        for host in self.hosts:
            command(f"ip netns add {host}")
            sysctl(host, "net.ipv4.ip_forward", 1)
            sysctl(host, "net.ipv4.tcp_rmem", f"4096 131072 {_BUFFER_BYTES}")
        for number, (left, right) in enumerate(self.cables):
            command(
                f"ip link add name {left}-{right} netns {left} mtu {MTU_BYTES} gso_max_segs 1 "
                f"type veth peer name {right}-{left} netns {right} mtu {MTU_BYTES} gso_max_segs 1"
            )
            for host, other, end in ((left, right, 1), (right, left, 2)):
                command(f"ip address add 10.0.{number}.{end}/24 dev {host}-{other}", host)
                command(f"ip link set {host}-{other} up", host)
        for host in self.hosts:
            self._add_routes(host, host, "")

    def _add_routes(self, host: str, at: str, gateway: str, before: str = "") -> None:
        """Add routes to the hosts behind another one; the cables are a tree."""
        for number, (left, right) in enumerate(self.cables):
            if at not in (left, right) or (before and before in (left, right)):
                continue
            other, end = (right, 2) if at == left else (left, 1)
            if gateway:
                command(f"ip route add 10.0.{number}.0/24 via {gateway}", host)
            self._add_routes(host, other, gateway or f"10.0.{number}.{end}", at)

    def netem(self, device: str, arguments: str, limit: int = 100_000) -> None:
        """Set a device's delay and rate, and the number of packets that its queue holds."""
        command(f"tc qdisc replace dev {device} root netem limit {limit} {arguments}", device[0])

    def address(self, host: str) -> str:
        """Return the address of a host on the last of its cables."""
        number = max(number for number, cable in enumerate(self.cables) if host in cable)
        return f"10.0.{number}.{self.cables[number].index(host) + 1}"


@dataclass
class Sample:
    """TCP_INFO of a sender at a time since the kernel's boot."""

    at_s: float
    state: int
    unacked: int
    sacked: int
    rtt_us: int
    ssthresh: int
    cwnd: int
    reordering: int
    retransmitted: int
    pacing_mbit: float


class Connection:
    """A TCP connection with data in one direction.

    Attributes:
        ahead: segments that a busy application has written before they are sent.
        received: bytes that have arrived.
        samples: samples of the sender, one for each step that was run.
    """

    def __init__(
        self, network: Network, source: str, target: str, congestion: str, ahead: int = 256
    ) -> None:
        with inside(target), socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
            listener.bind((network.address(target), _PORT))
            listener.listen()
            with inside(source):
                self.sender = socket.socket()
                option = congestion.encode()
                self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, option)
                self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.sender.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER_BYTES)
                self.sender.connect(listener.getsockname())
            self.receiver, _ = listener.accept()
        self.sender.setblocking(False)
        self.receiver.setblocking(False)
        self.ahead = ahead
        self.received = 0
        self.samples: list[Sample] = []

    def info(self) -> Sample:
        """Query the kernel for the sender's TCP_INFO."""
        raw = self.sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
        words = struct.unpack_from("=24I", raw, 8)
        pacing_mbit = struct.unpack_from("=Q", raw, _PACING_AT)[0] * 8 / 1e6
        values = {name: words[at] for name, at in _WORDS.items()}
        return Sample(time.monotonic(), raw[_STATE_AT], pacing_mbit=pacing_mbit, **values)

    def write(self, segments: int) -> None:
        """Write a number of full segments, which must fit into the buffer."""
        size = segments * SEGMENT_BYTES
        assert self.sender.send(bytes(size)) == size

    def read(self) -> None:
        """Read all data that has arrived."""
        with contextlib.suppress(BlockingIOError):
            while data := self.receiver.recv(1 << 20):
                self.received += len(data)

    def fill(self) -> None:
        """Write as much as the buffer accepts, like a busy application."""
        (unsent,) = struct.unpack("i", fcntl.ioctl(self.sender, _SIOCOUTQNSD, bytes(4)))
        with contextlib.suppress(BlockingIOError):
            self.sender.send(bytes(max(self.ahead * SEGMENT_BYTES - unsent, 0)))

    def run(self, seconds: float, *, busy: bool = True, step_s: float = 0.001) -> None:
        """Let time pass, one sample per step; a busy application always has data to send."""
        for _ in range(round(seconds / step_s)):
            if busy:
                self.fill()
            time.sleep(step_s)
            self.read()
            self.samples.append(self.info())

    def close(self, first: str = "sender") -> None:
        """Close the connection: either end first, or "half": only the sender closes."""
        if first == "half":
            self.sender.shutdown(socket.SHUT_WR)
            time.sleep(0.5)
        order = [self.sender, self.receiver]
        for end in reversed(order) if first in {"receiver", "half"} else order:
            end.close()
            time.sleep(0 if first == "both" else 0.5)
        time.sleep(1)

    def abort(self) -> None:
        """End the connection by a reset, so that no data stays unsent."""
        linger = struct.pack("ii", 1, 0)
        for end in (self.sender, self.receiver):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            end.close()
        time.sleep(1)

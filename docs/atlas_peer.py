"""Play situations of docs/atlas.yml in a guest: a host and its scripted peer.

Each text of steps in /mnt/run/steps.json is played in a network namespace of its own, from the same
phase of the clock; /mnt/run/atlas.json gets a cell for each. A step is a method of Situation with
its arguments. Data are counted in segments of 1000 bytes, times in seconds.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import select
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

# The phase: the step to which timers of up to four hours are rounded.
MSS, RTT_S, PHASE_S = 1000, 0.01, 262.144
RUN = Path("/mnt/run")
_HOST, _PEER = "192.0.2.1", "192.0.2.2"
_TUNSETIFF, _TUN_NO_PI, _NEWNET = 0x400454CA, 0x1001, 0x40000000
_FLAGS = "FSRPAUECN"  # N: AE of AccECN
_KINDS = {0: "eol", 1: "nop", 2: "mss", 3: "wscale", 4: "sackOK", 5: "sack", 8: "ts", 34: "tfo"}
_KINDS |= {172: "accecn0", 174: "accecn1"}
_INFO = {"rto": 0, "pmtu": 13, "rtt": 15, "ssthresh": 17, "cwnd": 18, "reordering": 20}
_OPTIONS = bytes.fromhex("020403e8 04020101 01030307")  # MSS 1000, SACK, a window scale of 7
_START = 1000  # the peer's first sequence number


class Segment(NamedTuple):
    """A segment of the host: its time, and its fields relative to the first ones."""

    at_s: float
    flags: str
    first: int
    ack: int
    length: int
    window: int
    options: list[tuple[str, bytes]]
    ip: bytes


class Situation:
    """A connection of this host, with a peer on the other end of a TUN."""

    def __init__(self) -> None:
        self.tun = Path("/dev/net/tun").open("r+b", buffering=0)  # noqa: SIM115 -- open to the end
        fcntl.ioctl(self.tun, _TUNSETIFF, struct.pack("16sH22x", b"tun0", _TUN_NO_PI))
        for words in (f"address add {_HOST}/24 dev tun0", "link set tun0 up"):
            subprocess.run(["ip", *words.split()], check=True)
        self.sock, self.listener = socket.socket(), socket.socket()
        self.sock.setblocking(False)
        self.start, self.sent, self.got, self.cell = 0.0, 0, 0, list[str]()
        self.seen: list[Segment] = []
        self.ports, self.iss = (0, 0), 0
        time.sleep(PHASE_S - time.monotonic() % PHASE_S + 0.00025)
        self.forget()

    # Steps of the host

    def sysctl(self, name: str, value: str) -> None:
        """Set a sysctl of net.ipv4, or show that the kernel refuses the value."""
        try:
            Path("/proc/sys/net/ipv4", name).write_text(value)
        except OSError:
            self._show(f"{name} refuses {value}")

    def option(self, level: str, name: str, value: str) -> None:
        """Set an option of the host's socket."""
        number = value.encode() if not value.isdigit() else int(value)
        known = int(name) if name.isdigit() else getattr(socket, name)
        self.sock.setsockopt(getattr(socket, level), known, number)

    def connect(self) -> None:
        """Begin to connect, and read the SYN."""
        self.sock.connect_ex((_PEER, 80))
        self.wait("0.001")

    def fast(self) -> None:
        """Begin to connect with data, by Fast Open."""
        with contextlib.suppress(BlockingIOError):
            self.sock.sendto(b"x" * MSS, socket.MSG_FASTOPEN, (_PEER, 80))
        self.wait("0.001")

    def listen(self) -> None:
        """Listen on port 80."""
        self.listener = socket.create_server((_HOST, 80))

    def take(self) -> None:
        """Accept the connection."""
        self.sock, _ = self.listener.accept()
        self.sock.setblocking(False)

    def write(self, segments: str) -> None:
        """Write to the host's socket, as much as it takes."""
        with contextlib.suppress(BlockingIOError):
            self.sent += self.sock.send(b"x" * int(float(segments) * MSS))

    def read(self) -> None:
        """Read all that has arrived."""
        with contextlib.suppress(BlockingIOError):
            self.sock.recv(1 << 24)

    def close(self) -> None:
        """Close the host's socket."""
        self.sock.close()

    # Steps of the peer

    def send(self, flags: str, seq: int, ack: int, *, options: bytes = b"", **more: int) -> None:
        """Send a segment with these sequence numbers."""
        bits = sum(1 << _FLAGS.index(each) for each in flags)
        size = more.get("size", 0)
        head = (len(options) + 20) // 4 << 12 | bits
        tcp = struct.pack("!HHIIHHHH", *self.ports, seq, ack, head, more.get("window", 65535), 0, 0)
        tcp += options + b"y" * size
        self._emit(socket.IPPROTO_TCP, tcp)

    def _emit(self, protocol: int, content: bytes) -> None:
        ends = socket.inet_aton(_PEER) + socket.inet_aton(_HOST)
        if protocol == socket.IPPROTO_TCP:
            pseudo = ends + struct.pack("!HH", protocol, len(content))
            content = content[:16] + _checksum(pseudo + content) + content[18:]
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(content), 0, 0, 64, protocol, 0)
        self.tun.write(head[:10] + _checksum(head + ends) + ends + content)

    def syn(self, flags: str = "S", extra: str = "") -> None:
        """Begin a connection to port 80."""
        self.ports = (5000, 80)
        self.send(flags, _START, 0, options=_OPTIONS + bytes.fromhex(extra))
        self.got = 1
        self.wait("0.001")

    def synack(self, flags: str = "SA", options: str = "") -> None:
        """Answer a SYN after a round trip."""
        self.wait(str(RTT_S))
        self.send(flags, _START, self.iss + 1, options=bytes.fromhex(options) or _OPTIONS)
        self.got = 1
        self.wait("0.001")

    def ack(self, segments: str, *sacked: str, flags: str = "A", window: int = 65535) -> None:
        """Acknowledge this many segments, and blocks such as 4-6 by SACK."""
        blocks = [[int(end) * MSS + self.iss + 1 for end in each.split("-")] for each in sacked]
        options = b"".join(struct.pack("!II", *block) for block in blocks)
        options = options and bytes([1, 1, 5, len(options) + 2]) + options
        ack = int(float(segments) * MSS) + self.iss + 1
        self.send(flags, _START + self.got, ack, options=options, window=window)
        self.wait("0.001")

    def ece(self, segments: str) -> None:
        """Acknowledge segments with ECE."""
        self.ack(segments, flags="AE")

    def shut(self, segments: str) -> None:
        """Acknowledge segments with a window of 0."""
        self.ack(segments, window=0)

    def data(self, *at: str) -> None:
        """Send the next segment, or those with these numbers."""
        for number in at or (str((self.got - 1) // MSS),):
            first = int(number) * MSS + 1
            self.send("A", _START + first, self.iss + 1, size=MSS)
            self.got = max(self.got, first + MSS) if not at else self.got

    def flagged(self, flags: str, offset: str = "0") -> None:
        """Send a segment without data at an offset from the next one."""
        self.send(flags, _START + self.got + int(offset), self.iss + 1 + self.sent)
        self.wait("0.001")

    def stream(self, count: str, gap_s: str) -> None:
        """Send segments with gaps; the host reads each."""
        for _ in range(int(count)):
            self.data()
            self.wait(gap_s)
            self.read()

    def narrow(self, mtu: str) -> None:
        """Refuse the latest segment with ICMP, for its size."""
        content = struct.pack("!BBHHH", 3, 4, 0, 0, int(mtu)) + self.seen[-1].ip[:28]
        self._emit(socket.IPPROTO_ICMP, content[:2] + _checksum(content) + content[4:])
        self.wait("0.001")

    def serve(self, seconds: str, mbit: str, rtt_s: str) -> None:
        """Acknowledge each segment, behind a queue of this rate."""
        free, due, acked = time.monotonic(), list[tuple[float, int]](), 0
        end, used = free + float(seconds), len(self.seen)
        while (now := time.monotonic()) < end:
            while due and due[0][0] <= now:
                acked = max(acked, due.pop(0)[1])
                self.send("A", _START + self.got, self.iss + 1 + acked)
                self.write("100")
            self.wait("0.0002")
            for each in self.seen[used:]:
                free = max(free, now) + each.length * 8e-6 / float(mbit)
                due.append((free + float(rtt_s), each.first + each.length))
            used = len(self.seen)

    # Steps that let time pass, and steps that show a fact

    def wait(self, seconds: str) -> None:
        """Let time pass, and read the host's segments."""
        end = time.monotonic() + float(seconds)
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.tun], [], [], left)[0]:
                continue
            packet = self.tun.read(1 << 16)
            if packet[9] == socket.IPPROTO_TCP:
                self._take(time.monotonic(), packet)

    def _take(self, now: float, packet: bytes) -> None:
        host, peer, seq, ack, head, window = struct.unpack_from("!HHIIHH", packet, 20)
        flags = "".join(name for bit, name in enumerate(_FLAGS) if head >> bit & 1)
        self.ports = (peer, host)
        self.iss = seq if "S" in flags else self.iss
        size, options = (head >> 12) * 4, []
        left = packet[40 : 20 + size]
        while left:
            length = left[1] if left[0] > 1 else 1
            options.append((_KINDS.get(left[0], str(left[0])), left[2:length]))
            left = left[length:]
        first, length = (seq - self.iss - 1) % (1 << 32), len(packet) - 20 - size
        at_s = now - self.start
        self.seen.append(Segment(at_s, flags, first, ack, length, window, options, packet))

    def forget(self) -> None:
        """Forget the segments seen, and begin to count time."""
        self.start, self.seen = time.monotonic(), []

    def _show(self, text: object) -> None:
        self.cell.append(str(text))

    def times(self) -> None:
        """Show when the segments were seen."""
        self._show(", ".join(f"{each.at_s:.3f}".rstrip("0").rstrip(".") for each in self.seen))

    def numbers(self, *only: str) -> None:
        """Show the numbers of the segments, each with its time."""
        found = [(f"{each.first // MSS}", each.at_s * 1000) for each in self.seen]
        shown = [f"{number} at {ms:.0f}" for number, ms in found if not only or number in only]
        self._show(", ".join(shown) + " ms" if shown else "none")

    def count(self) -> None:
        """Show the number of segments seen."""
        self._show(len(self.seen))

    def lengths(self) -> None:
        """Show the different lengths of the segments."""
        found = dict.fromkeys(each.length for each in self.seen)
        self._show(", ".join(map(str, found)))

    def flags(self) -> None:
        """Show the flags of each segment."""
        self._show(" ".join(each.flags for each in self.seen) or "none")

    def window(self) -> None:
        """Show the window of the latest segment, as it is in the header."""
        self._show(self.seen[-1].window if self.seen else "none")

    def options(self) -> None:
        """Show the options of the latest segment: names, and values of one number."""
        shown = [
            f"{name} {int.from_bytes(value, 'big')}" if name in {"mss", "wscale"} else name
            for name, value in (self.seen[-1].options if self.seen else [])
        ]
        self._show(", ".join(shown) or "none")

    def blocks(self) -> None:
        """Show the SACK blocks of the latest segment, in the peer's segments."""
        found = [value for name, value in self.seen[-1].options if name == "sack"]
        ends = [int.from_bytes(v[i : i + 4], "big") for v in found for i in range(0, len(v), 4)]
        shown = [(end - _START - 1) // MSS for end in ends]
        self._show(" ".join(f"{a}-{b}" for a, b in zip(shown[::2], shown[1::2], strict=True)))

    def ip(self) -> None:
        """Show fields of the latest segment's IP header."""
        head = self.seen[-1].ip
        self._show(f"TTL {head[8]}, DF {head[6] >> 6 & 1}, ECN {head[1] & 3}")

    def info(self, *names: str) -> None:
        """Show fields of TCP_INFO."""
        words = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
        for name in names:
            (value,) = struct.unpack_from("=I", words, 8 + 4 * _INFO[name])
            self._show(f"{name} {value if value < 1 << 30 else 'infinite'}")

    def fail(self, most_s: str) -> None:
        """Wait for an error of the host's socket; show it, and its second."""
        number = 0
        while not number and time.monotonic() < self.start + float(most_s):
            self.wait("0.5")
            number = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        name = errno.errorcode.get(number, "no error")
        self._show(f"{name} after {time.monotonic() - self.start:.0f} s")

    def acked(self) -> None:
        """Show the number of the peer's bytes that are acknowledged."""
        self._show(f"{self.seen[-1].ack - _START - 1} bytes")

    def accepted(self) -> None:
        """Show the bytes that the host's socket has taken."""
        self._show(f"{self.sent} bytes")


def _checksum(data: bytes) -> bytes:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) // 2 * 2]))
    total += data[-1] << 8 if len(data) % 2 else 0
    total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF)


def play(steps: str) -> str:
    """Carry out the steps in a namespace of their own, and return the cell."""
    if ctypes.CDLL(None, use_errno=True).unshare(_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    situation = Situation()
    for step in steps.split(", "):
        name, *words = step.split()
        getattr(situation, name)(*words)
    return "; ".join(situation.cell)


if __name__ == "__main__":
    sys.path.insert(0, "/mnt/twoway/vm/guest")
    from plan_clock import report_progress

    (RUN / "sockets").mkdir(exist_ok=True)
    cells = []
    for each in json.loads((RUN / "steps.json").read_text()):
        report_progress()
        cells.append(play(each))
    (RUN / "atlas.json").write_text(json.dumps(cells))

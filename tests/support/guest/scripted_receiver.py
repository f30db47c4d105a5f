"""A TCP receiver with scripted losses, and its traces of a real sender.

The path is a first-in-first-out queue of segments: one arrives, is acknowledged at once, and the
sender reacts before the next arrives, a millisecond later or as the scenario says. When the path is
empty, the sender's retransmission timer is awaited. So every segment and every window is attributed
to one ACK. packetdrill would express some of it in fewer words, but Debian has no package of it,
neither 12 nor sid, and the kernel's tree has scripts for it without the program.

Runs in the guest as root: `scripted_receiver.py PREFIX` plays the scenarios of that name and leaves
/mnt/run/traces.json. Tests import it for the scenarios.
"""

import contextlib
import json
import random
import socket
import struct
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

SEGMENT_BYTES = 500
STEP_S = 0.001
# Longest wait for the sender's timer: Linux's has at most 1 s before the first sample and 200 ms
# after it, doubled by backoff; BSD's has several round trips of a slow path.
PATIENCE_S = 60.0
PAUSE_S = 3.0
LATENESS = 8
MODULES = Path("/mnt/bin")
RUN = Path("/mnt/run")

_SENDER, _RECEIVER = "10.9.0.1", "10.9.0.2"
_PORT = 5001
_FIRST_SOURCE_PORT = 40001
_RECEIVER_MAC = bytes.fromhex("020000000002")
_ETHERTYPE_IPV4 = 0x0800
_ISS = 1_000_000
_SYN, _RST, _ACK = 0x02, 0x04, 0x10
_TCP_INFO_BYTES = 192
_TIMESTAMP_BYTES = 12
# Layout of struct tcp_info: eight bytes, then words.
_WORDS = {"unacked": 4, "sacked": 5, "lost": 6, "retrans": 7, "ssthresh": 17, "cwnd": 18}


@dataclass(frozen=True)
class Scenario:
    """The data sent, and what happens to it on the path.

    Attributes:
        congestion: the sender's congestion control.
        lost: lost segments by number from 0; one named twice is lost twice.
        late: segments that LATENESS others overtake.
        writes: segments that the application writes, each after a pause that starts when all before
            it are acknowledged.
        offered: the receiver's window, in segments.
        parameters: of the module.
        timestamps: True if the connection has them; then the sender can distinguish a late
            segment's ACK from its retransmission's.
        step_s: time from one arrival to the next.
    """

    congestion: str
    lost: tuple[int, ...] = ()
    late: tuple[int, ...] = ()
    writes: tuple[int, ...] = (120,)
    offered: int = 100
    parameters: tuple[str, ...] = ()
    timestamps: bool = False
    step_s: float = STEP_S

    @property
    def module(self) -> str:
        """The kernel module that it needs."""
        return f"tcp_{self.congestion.rstrip('0123456789').removesuffix('_rto')}"


# The settings of experiments on the papers' TCP; a test compares it with twoway.plan.personality.
SYSCTLS = {
    "net.ipv4.tcp_timestamps": 0,
    "net.ipv4.tcp_sack": 0,
    "net.ipv4.tcp_early_retrans": 0,
    "net.ipv4.tcp_recovery": 0,
    "net.ipv4.tcp_frto": 0,
    "net.ipv4.tcp_no_metrics_save": 1,
    "net.ipv4.tcp_autocorking": 0,
    "net.ipv4.tcp_slow_start_after_idle": 0,
    "net.core.wmem_max": 1 << 25,
}


def _random_losses(seed: int) -> Scenario:
    """Draw up to eight losses anywhere, either control and rule, and a small or large window."""
    chance = random.Random(seed)
    return Scenario(
        chance.choice(("tahoe", "tahoe_rto")),
        lost=tuple(chance.choices(range(120), k=chance.randint(1, 8))),
        offered=chance.choice((12, 100)),
        parameters=chance.choice(((), ("growth=bsd", "ssthresh=bsd"))),
    )


SCENARIOS = {
    "tahoe: no loss": Scenario("tahoe"),
    "tahoe: one loss in slow start": Scenario("tahoe", lost=(20,)),
    "tahoe: one loss in avoidance": Scenario("tahoe", lost=(12, 80)),
    "tahoe: two in a row": Scenario("tahoe", lost=(40, 41)),
    "tahoe: two, with one between": Scenario("tahoe", lost=(40, 42)),
    "tahoe: two, far apart in one window": Scenario("tahoe", lost=(35, 50)),
    "tahoe: four in one window": Scenario("tahoe", lost=(40, 41, 44, 49)),
    "tahoe: the retransmission too": Scenario("tahoe", lost=(40, 40)),
    "tahoe: the retransmission twice": Scenario("tahoe", lost=(40, 40, 40)),
    "tahoe: too few duplicates": Scenario("tahoe", lost=(4,)),
    "tahoe: the last segment": Scenario("tahoe", lost=(119,)),
    "tahoe: a window that the receiver limits": Scenario("tahoe", lost=(70,), offered=10),
    "tahoe: bsd threshold, a window that the receiver limits": Scenario(
        "tahoe", lost=(70,), offered=10, parameters=("ssthresh=bsd",)
    ),
    "tahoe: late": Scenario("tahoe", late=(40,)),
    "tahoe: late, with timestamps": Scenario("tahoe", late=(40,), timestamps=True),
    "tahoe: pauses": Scenario("tahoe", lost=(20,), writes=(40, 40, 10)),
    "tahoe: bsd growth": Scenario("tahoe", lost=(20, 95), parameters=("growth=bsd",)),
    "tahoe: bsd growth, two in a row": Scenario("tahoe", lost=(20, 21), parameters=("growth=bsd",)),
    "tahoe: bsd slow start": Scenario("tahoe", lost=(20, 95), parameters=("slow_start=bsd",)),
    "tahoe: bsd altogether": Scenario(
        "tahoe", lost=(20, 21, 90), parameters=("growth=bsd", "slow_start=bsd", "ssthresh=bsd")
    ),
    "tahoe: bsd timer, a fast path": Scenario(
        "tahoe", lost=(20, 20, 20, 60, 61), parameters=("timer=bsd",)
    ),
    "tahoe: bsd timer, a slow path": Scenario(
        "tahoe", lost=(20, 20, 20, 60, 61), offered=6, parameters=("timer=bsd",), step_s=0.2497
    ),
    "tahoe_rto: bsd timer": Scenario(
        "tahoe_rto", lost=(20, 50, 50, 51), offered=6, parameters=("timer=bsd",), step_s=0.2003
    ),
    "tahoe_rto: one loss": Scenario("tahoe_rto", lost=(40,)),
    "tahoe_rto: two in a row": Scenario("tahoe_rto", lost=(40, 41)),
    "tahoe_rto: two, far apart in one window": Scenario("tahoe_rto", lost=(35, 50)),
    "tahoe_rto: a loss each in two windows": Scenario("tahoe_rto", lost=(20, 70)),
    "tahoe_rto: bsd growth": Scenario("tahoe_rto", lost=(20, 70), parameters=("growth=bsd",)),
    "fixed: no loss": Scenario("fixed9", parameters=("windows=9,30",)),
    "fixed: one loss": Scenario("fixed9", lost=(40,), parameters=("windows=9,30",)),
    "fixed: two in a row": Scenario("fixed30", lost=(40, 41), parameters=("windows=9,30",)),
    "fixed: the retransmission too": Scenario(
        "fixed9", lost=(40, 40), parameters=("windows=9,30",)
    ),
}

SCENARIOS |= {f"tahoe: random losses {seed}": _random_losses(seed) for seed in range(80)}


@dataclass(frozen=True)
class Step:
    """The sender's actions at one event.

    Attributes:
        event: "write", "ack" or "timeout".
        ack: segments acknowledged so far.
        sent: segments sent, by number.
        at_s: its time since boot, for a timeout at most STEP_S later.
        cwnd, ssthresh, unacked, sacked, lost, retrans: from TCP_INFO, after it.
        on_the_way: segments on the path, after it.
    """

    event: str
    ack: int
    sent: list[int]
    at_s: float = 0.0
    on_the_way: int = 0
    cwnd: int = 0
    ssthresh: int = 0
    unacked: int = 0
    sacked: int = 0
    lost: int = 0
    retrans: int = 0


@dataclass
class Receiver:
    """The segments that have arrived, and the cumulative acknowledgement for them."""

    arrived: set[int] = field(default_factory=set)
    next: int = 0

    def take(self, segment: int) -> int:
        """Take a segment; return the number of segments acknowledged then."""
        self.arrived.add(segment)
        while self.next in self.arrived:
            self.next += 1
        return self.next


class Wire:
    """The receiver's end of a cable: it sends and receives frames."""

    def __init__(self) -> None:
        self.packet = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
        self.packet.bind(("peer", 0))
        self.packet.setblocking(False)
        mac = Path("/sys/class/net/sender/address").read_text().strip()
        self.sender_mac = bytes.fromhex(mac.replace(":", ""))

    def arriving(self, port: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield the sender's segments on a connection: flags, sequence, payload, timestamp."""
        with contextlib.suppress(BlockingIOError):
            while True:
                frame, address = self.packet.recvfrom(2048)
                outgoing = address[2] == socket.PACKET_OUTGOING
                if outgoing or address[1] != _ETHERTYPE_IPV4 or frame[23] != socket.IPPROTO_TCP:
                    continue
                source_port, _, seq, _, offset, flags = struct.unpack("!HHIIBB", frame[34:48])
                if source_port == port:
                    header = (offset >> 4) * 4
                    length = struct.unpack("!H", frame[16:18])[0]
                    stamped = header == 20 + _TIMESTAMP_BYTES
                    stamp = struct.unpack("!I", frame[58:62])[0] if stamped else 0
                    yield flags, seq, length - 20 - header, stamp

    def send(
        self, port: int, flags: int, ack: int, window: int, *, seq: int, options: bytes = b""
    ) -> None:
        """Send one segment without payload to the sender."""
        offset = (20 + len(options)) // 4 << 4
        tcp = struct.pack("!HHIIBBHHH", _PORT, port, seq, ack, offset, flags, window, 0, 0)
        tcp += options
        ends = socket.inet_aton(_RECEIVER) + socket.inet_aton(_SENDER)
        pseudo = ends + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(tcp))
        tcp = tcp[:16] + _checksum(pseudo + tcp) + tcp[18:]
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, socket.IPPROTO_TCP, 0)
        ip = ip[:10] + _checksum(ip + ends) + ends
        ethernet = self.sender_mac + _RECEIVER_MAC + struct.pack("!H", _ETHERTYPE_IPV4)
        self.packet.send(ethernet + ip + tcp)


def _timestamps(echo: int) -> bytes:
    return struct.pack("!BBBBII", 1, 1, 8, 10, 1, echo)


def _checksum(data: bytes) -> bytes:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF)


class Play:
    """One scenario with its sockets."""

    def __init__(self, wire: Wire, scenario: Scenario, port: int) -> None:
        self.wire, self.scenario, self.port = wire, scenario, port
        self.window = scenario.offered * SEGMENT_BYTES
        self.lost = Counter(scenario.lost)
        self.late = Counter(scenario.late)
        self.path: deque[tuple[int, int]] = deque()
        self.trace: list[Step] = []
        self.acked = 0
        self.echo = 0
        self.socket = socket.socket()
        option = scenario.congestion.encode()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, option)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        linger = struct.pack("ii", 1, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.socket.bind((_SENDER, port))
        self.socket.setblocking(False)

    def connect(self) -> None:
        """Shake hands; the receiver offers no option but its segment size."""
        with contextlib.suppress(BlockingIOError):
            self.socket.connect((_RECEIVER, _PORT))
        time.sleep(STEP_S)
        (flags, seq, *_), *_ = self.wire.arriving(self.port)
        assert flags & _SYN
        self.first_byte = seq + 1
        mss = SEGMENT_BYTES + (_TIMESTAMP_BYTES if self.scenario.timestamps else 0)
        options = struct.pack("!BBH", 2, 4, mss)
        if self.scenario.timestamps:
            options += _timestamps(0)
        self.wire.send(
            self.port, _SYN | _ACK, self.first_byte, self.window, seq=_ISS, options=options
        )
        time.sleep(STEP_S)
        assert [flags for flags, *_ in self.wire.arriving(self.port)] == [_ACK]

    def run(self) -> list[Step]:
        """Play the whole scenario; return the sender's actions, step by step."""
        receiver = Receiver()
        written = 0
        for segments in self.scenario.writes:
            if written:
                time.sleep(PAUSE_S)
            written += segments
            assert self.socket.send(bytes(segments * SEGMENT_BYTES)) == segments * SEGMENT_BYTES
            self._step("write")
            while receiver.next < written:
                self._arrival(receiver)
        return self.trace

    def _arrival(self, receiver: Receiver) -> None:
        if not self.path:
            self._await_timeout()
        segment, stamp = self.path.popleft()
        if self.lost[segment]:
            self.lost[segment] -= 1
            return
        if self.late[segment]:
            self.late[segment] -= 1
            self.path.insert(LATENESS, (segment, stamp))
            return
        before, self.acked = self.acked, receiver.take(segment)
        if self.acked > before:
            self.echo = stamp
        ack = (self.first_byte + self.acked * SEGMENT_BYTES) % (1 << 32)
        options = _timestamps(self.echo) if self.scenario.timestamps else b""
        self.wire.send(self.port, _ACK, ack, self.window, seq=_ISS + 1, options=options)
        self._step("ack")

    def _await_timeout(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self.path:
            assert time.monotonic() < deadline, "the sender fell silent"
            self._note("timeout", time.monotonic())
            time.sleep(STEP_S)

    def _step(self, event: str) -> None:
        at_s = time.monotonic()
        time.sleep(self.scenario.step_s)
        self._note(event, at_s)

    def _note(self, event: str, at_s: float) -> None:
        """Record the segments sent since the last event; record a timeout only if it sent one."""
        sent = []
        for _, seq, payload, stamp in self.wire.arriving(self.port):
            assert payload == SEGMENT_BYTES, f"a segment of {payload} bytes"
            sent.append((seq - self.first_byte) % (1 << 32) // SEGMENT_BYTES)
            self.path.append((sent[-1], stamp))
        if event == "timeout" and not sent:
            return
        info = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        words = struct.unpack(f"{len(info[8:104]) // 4}I", info[8:104])
        values = {name: words[at] for name, at in _WORDS.items()}
        self.trace.append(Step(event, self.acked, sent, at_s, len(self.path), **values))

    def close(self) -> None:
        """Reset the connection, and drop the resulting segments."""
        self.socket.close()
        time.sleep(STEP_S)
        assert [flags & _RST for flags, *_ in self.wire.arriving(self.port)][-1:] == [_RST]


def _command(line: str) -> None:
    subprocess.run(line.split(), check=True)


def make_wire() -> Wire:
    """Make a cable between the sender's stack and us."""
    _command("ip link set lo up")
    _command("ip link add sender mtu 1500 type veth peer name peer")
    _command("ip link set sender gso_max_segs 1")
    _command(f"ip address add {_SENDER}/24 dev sender")
    for name in ("sender", "peer"):
        _command(f"ethtool -K {name} tso off gso off gro off tx off rx off sg off")
        _command(f"ip link set {name} up")
    mac = _RECEIVER_MAC.hex(":")
    _command(f"ip neigh replace {_RECEIVER} lladdr {mac} dev sender nud permanent")
    return Wire()


def set_sysctls() -> None:
    """Set the sender's stack as an experiment would."""
    for name, value in SYSCTLS.items():
        (Path("/proc/sys") / name.replace(".", "/")).write_text(str(value))


def play_all(scenarios: dict[str, Scenario]) -> dict[str, list[Step]]:
    """Play scenarios one after another, each with its module freshly loaded."""
    wire = make_wire()
    traces = {}
    for number, (name, scenario) in enumerate(scenarios.items()):
        Path("/proc/sys/net/ipv4/tcp_timestamps").write_text(str(int(scenario.timestamps)))
        module = MODULES / f"{scenario.module}.ko"
        subprocess.run(["insmod", str(module), *scenario.parameters], check=True)
        play = Play(wire, scenario, _FIRST_SOURCE_PORT + number)
        play.connect()
        traces[name] = play.run()
        refused = subprocess.run(["rmmod", scenario.module], check=False, capture_output=True)
        assert refused.returncode != 0, f"{scenario.module} left while a socket used it"
        play.close()
        subprocess.run(["rmmod", scenario.module], check=True)
    return traces


def main() -> int:
    """Play the scenarios whose names start as the command line says."""
    set_sysctls()
    chosen = {name: s for name, s in SCENARIOS.items() if name.startswith(sys.argv[1])}
    traces = {name: [asdict(s) for s in t] for name, t in play_all(chosen).items()}
    (RUN / "traces.json").write_text(json.dumps(traces))
    return 0


if __name__ == "__main__":
    sys.exit(main())

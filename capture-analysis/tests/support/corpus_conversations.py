"""TCP conversations that a capture might contain: packets from IP upwards, made by scapy.

They need not come from a real stack; they show what captures can contain.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet, Raw

START_NS = 946_684_830_123_456_789
MSS_BYTES = 1448

Wrap = Callable[[Packet], Packet]
ADDRESSES = {4: ("10.0.1.2", "10.0.2.2"), 6: ("2001:db8:1::2", "2001:db8:2::2")}


@dataclass(frozen=True)
class Datagram:
    """An IP packet at a time."""

    time_ns: int
    version: int
    octets: bytes


class Conversation:
    """Both ends of a connection, which does what its methods say.

    Args:
        log: where packets go, shared with other connections.
        seed: of sizes, times and numbers.
        version: of IP.
        port: of the end 0.
        isn: initial sequence numbers of both ends, or random ones.
        wrap: changes each IP packet before it is built.
    """

    def __init__(
        self,
        log: list[Datagram],
        seed: int,
        *,
        version: int = 4,
        port: int = 40001,
        isn: tuple[int, int] | None = None,
        wrap: Wrap = lambda packet: packet,
    ) -> None:
        self.log, self.version, self.wrap = log, version, wrap
        self.random = random.Random(seed)
        self.ports = (port, 20001)
        self.next = list(isn or (self.random.getrandbits(32), self.random.getrandbits(32)))
        self.ack = [0, 0]
        self.ip_id = [self.random.getrandbits(16), self.random.getrandbits(16)]
        self.clock = [self.random.getrandbits(32), self.random.getrandbits(32)]
        self.echo = [0, 0]

    def packet(
        self, end: int, payload: bytes = b"", *, hidden: bool = False, **fields: Any
    ) -> None:
        """Send a packet; missing `seq`, `ack`, `flags`, `window`, `options` follow from the state.

        A `hidden` packet is sent, but not captured. Given sequence numbers do not count as new.
        """
        flags = fields.pop("flags", "A")
        sent = fields.pop("seq", None)
        options = fields.pop("options", [("NOP", None), ("NOP", None)])
        stamps = fields.pop("stamps", True)
        time_ns = self._now()
        if stamps:
            options = [*options, ("Timestamp", (self._ticks(end), self.echo[end]))]
        tcp = TCP(
            sport=self.ports[end],
            dport=self.ports[1 - end],
            seq=self.next[end] % 2**32 if sent is None else sent % 2**32,
            ack=fields.pop("ack", self.ack[end]) % 2**32,
            flags=flags,
            window=fields.pop("window", self.random.randrange(1, 65536)),
            options=options,
            **fields,
        )
        if sent is None:
            self.next[end] += len(payload) + ("S" in flags) + ("F" in flags)
        self.ip_id[end] = (self.ip_id[end] + 1) % 2**16
        if not hidden:
            ip = self._ip(end) / tcp / (Raw(payload) if payload else b"")
            self.log.append(Datagram(time_ns, self.version, bytes(self.wrap(ip))))
            self.ack[1 - end] = self.next[end]
            self.echo[1 - end] = self._ticks(end)

    def data(self, end: int, payload_bytes: int = MSS_BYTES, **fields: Any) -> None:
        """Send a segment of zeros."""
        self.packet(end, bytes(payload_bytes), **fields)

    def opening(self, mss: int = 1460, scale: int = 7) -> None:
        """Send SYN, SYN and ACK, ACK."""
        options = [("MSS", mss), ("SAckOK", b""), ("WScale", scale)]
        self.packet(0, flags="S", ack=0, options=options)
        self.packet(1, flags="SA", options=options)
        self.packet(0)

    def closing(self) -> None:
        """Send FIN from both, and the last ACK."""
        self.packet(0, flags="FA")
        self.packet(1, flags="FA")
        self.packet(0)

    def exchange(self, packets: int) -> None:
        """Send two-way data of various sizes with its ACKs, without losses."""
        for _ in range(packets):
            end = self.random.randrange(2)
            if self.random.random() < 0.6:
                self.data(end, self.random.choice([1, 7, 100, 536, MSS_BYTES]))
            else:
                self.packet(end)

    def loss(self, end: int, again: int = 1) -> None:
        """Send a segment that the capture lacks, duplicate ACKs, and the segment once more."""
        hole = self.next[end]
        self.data(end, 1000, hidden=True)
        for _ in range(4):
            self.data(end, 1000)
            edges = (hole + 1000) % 2**32, self.next[end] % 2**32
            options = [("NOP", None), ("NOP", None), ("SAck", edges)]
            self.packet(1 - end, ack=hole, options=options)
        for _ in range(again):
            self.data(end, 1000, seq=hole)
        self.packet(1 - end, ack=self.next[end])

    def _ip(self, end: int) -> Packet:
        ends = ADDRESSES[self.version]
        if self.version == 4:
            return IP(src=ends[end], dst=ends[1 - end], id=self.ip_id[end])
        return IPv6(src=ends[end], dst=ends[1 - end], fl=self.ip_id[end])

    def _now(self) -> int:
        last = self.log[-1].time_ns if self.log else START_NS
        return last + int(10 ** self.random.uniform(2, 7.5))

    def _ticks(self, end: int) -> int:
        time_ns = self.log[-1].time_ns if self.log else START_NS
        return (self.clock[end] + (time_ns - START_NS) // 1_000_000) % 2**32


def whole(
    seed: int, *, version: int = 4, packets: int = 20, wrap: Wrap | None = None
) -> list[Datagram]:
    """Send a connection from SYN to last ACK, with a loss in each direction."""
    log: list[Datagram] = []
    settings: dict[str, Any] = {"wrap": wrap} if wrap else {}
    talk = Conversation(log, seed, version=version, **settings)
    talk.opening()
    talk.exchange(packets)
    talk.loss(0)
    talk.loss(1)
    talk.closing()
    return log


def several(seed: int, flows: int, *, versions: tuple[int, ...] = (4,)) -> list[Datagram]:
    """Send this number of connections at once."""
    log: list[Datagram] = []
    chosen = random.Random(seed)
    talks = [
        Conversation(log, seed + n, version=versions[n % len(versions)], port=40001 + n)
        for n in range(flows)
    ]
    for talk in talks:
        talk.opening()
    for _ in range(6 * flows):
        chosen.choice(talks).exchange(2)
    for talk in talks:
        talk.closing()
    return log

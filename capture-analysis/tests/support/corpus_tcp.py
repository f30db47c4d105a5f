"""Conversations with all that TCP may do and that captures may show of it."""

import random
from functools import cache

from corpus_conversations import Conversation, Datagram, several, whole
from scapy.layers.inet import IP, TCP

WRAP = 2**32


@cache
def variants() -> dict[str, list[Datagram]]:
    """Return conversations by name."""
    found = {name: _talk(name) for name in _TALKS}
    talk, other = whole(60, packets=40), whole(61, version=6)
    found["mid-stream"] = talk[13:]
    found["mid-stream-acks-first"] = [d for d in talk[13:] if len(d.octets) < 80] + talk[40:]
    found["one-direction"] = [d for d in talk if IP(d.octets).src == "10.0.1.2"]
    found["other-direction"] = [d for d in talk if IP(d.octets).src == "10.0.2.2"]
    found["answer-first"] = talk[1:]
    found["each-twice"] = [d for d in talk for _ in (0, 1)]
    found["each-four-times"] = [d for d in other for _ in range(4)]
    found["reordered"] = _reordered(talk, 3)
    found["reordered-far"] = _reordered(other, 9)
    found["times-backward"] = [
        Datagram(d.time_ns - (n % 5 == 4) * 3_000_000, d.version, d.octets)
        for n, d in enumerate(talk)
    ]
    found["times-equal"] = [Datagram(talk[0].time_ns, d.version, d.octets) for d in talk]
    found["epoch"] = [Datagram(n, d.version, d.octets) for n, d in enumerate(talk)]
    for flows in (2, 7, 30):
        found[f"flows-{flows}"] = several(62, flows, versions=(4, 6))
    return found


def _reordered(talk: list[Datagram], distance: int) -> list[Datagram]:
    """Reorder packets by up to a number of places, at the times of those places."""
    chosen = random.Random(distance)
    keys = [n + chosen.uniform(0, distance) for n in range(len(talk))]
    order = sorted(range(len(talk)), key=keys.__getitem__)
    return [
        Datagram(talk[place].time_ns, talk[n].version, talk[n].octets)
        for place, n in enumerate(order)
    ]


def _talk(name: str) -> list[Datagram]:
    log: list[Datagram] = []
    settings = {"isn": (WRAP - 3000, WRAP - 200)} if "wrap" in name else {}
    talk = Conversation(log, sum(name.encode()), **settings)  # type: ignore[arg-type]
    talk.opening()
    _TALKS[name](talk)
    return log


def _wrapping(talk: Conversation) -> None:
    talk.exchange(10)
    talk.loss(0)
    talk.loss(1)
    talk.closing()


def _options(talk: Conversation) -> None:
    """Send each known option, in unusual places, and some unknown options."""
    edges = (talk.next[0] + 1000) % WRAP, (talk.next[0] + 2000) % WRAP
    for options in (
        [("SAck", edges)],
        [("SAck", edges * 2)],
        [("SAck", edges * 3)],
        [("SAck", edges * 4)],
        [("EOL", None)],
        [(254, b"experiment")],
        [(34, b"cookie12")],
        [(28, b"\x80\x10")],
        [("NOP", None)] * 8,
        [("WScale", 14), ("MSS", 1)],
        [(30, b"\x00\x81" + bytes(8))],
        [(30, b"\x20\x01" + bytes(6))],
        [(19, bytes(16))],
        [("AltChkSum", (1, 2))],
        [],
    ):
        talk.packet(0, options=options, stamps=False)
        if sum(len(str(o)) for o in options) < 60:
            talk.packet(1, options=options)


def _multipath(talk: Conversation) -> None:
    for n in range(10):
        talk.data(
            n % 2, 100, options=[("NOP", None), ("NOP", None), (30, b"\x20\x01" + bytes(n % 4 + 4))]
        )


def _flags(talk: Conversation) -> None:
    for flags in range(0, 512, 9):
        talk.packet(flags % 2, seq=talk.next[flags % 2], flags=flags & ~7)
    talk.packet(0, seq=talk.next[0], flags="U", urgptr=7)
    talk.packet(1, seq=talk.next[1], flags=0, reserved=7)


def _resets(talk: Conversation) -> None:
    talk.exchange(4)
    talk.packet(0, flags="R", ack=0)
    talk.packet(1, flags="RA")
    talk.packet(1, flags="RA", seq=talk.next[1])


def _probes(talk: Conversation) -> None:
    """Send keep-alives with and without a byte, their answers, zero windows, window updates."""
    talk.exchange(6)
    for end in (0, 1):
        talk.packet(1 - end)
        talk.packet(end, seq=talk.next[end] - 1)
        talk.packet(1 - end)
        talk.data(end, 1, seq=talk.next[end] - 1)
        talk.packet(1 - end, window=0)
        talk.data(end, 1)
        talk.packet(1 - end, window=0, ack=talk.next[end] - 1)
        talk.packet(1 - end, window=1000, ack=talk.next[end] - 1)
        talk.packet(1 - end, window=9000)


def _ports_again(talk: Conversation) -> None:
    """Connect the same ends again with other ISNs, and then once more without a pause."""
    for _ in range(3):
        talk.exchange(6)
        talk.closing()
        talk.next = [talk.random.getrandbits(32), talk.random.getrandbits(32)]
        talk.opening()
    talk.packet(0, flags="S", seq=talk.next[0] + 5_000_000, ack=0)
    talk.packet(1, flags="SA", seq=talk.next[1] + 7_000_000)


def _syns_again(talk: Conversation) -> None:
    """Send SYNs more than once."""
    again = [end - 1 for end in talk.next]
    talk.packet(0, flags="S", seq=again[0], ack=0)
    talk.packet(1, flags="SA", seq=again[1])
    talk.exchange(5)
    talk.packet(1, flags="SA", seq=again[1])


def _holes(talk: Conversation) -> None:
    for end in (0, 1):
        for again in (1, 2, 4):
            talk.exchange(3)
            talk.loss(end, again)


def _captured_late(talk: Conversation) -> None:
    """Send ACKs of bytes that were not captured."""
    talk.data(0, 1000, hidden=True)
    talk.packet(1, ack=talk.next[0])
    talk.data(0, 1000)
    talk.packet(1, ack=talk.next[0] + 5000)
    talk.packet(1, ack=talk.next[0] - 500)


def _big(talk: Conversation) -> None:
    """Send segments as large as IP allows, as offload makes them."""
    for n in range(8):
        talk.data(n % 2, 65535 - 20 - 20 - 12 - n)


def _leap(talk: Conversation) -> None:
    """Jump by nearly half of the sequence space."""
    for n in range(6):
        talk.next[n % 2] += 2**31 - 2000
        talk.data(n % 2, 1000)
        talk.packet(1 - n % 2)


def _data_in_syn(talk: Conversation) -> None:
    talk.next = [end + 99_999 for end in talk.next]
    talk.packet(0, b"fast open", flags="S", ack=0, options=[(34, b"cookie12")])
    talk.packet(1, b"answer", flags="SA")
    talk.exchange(4)


def _both_open(talk: Conversation) -> None:
    """Open a connection from both ends at once."""
    talk.next = [end + 77_777 for end in talk.next]
    talk.packet(1, flags="S", ack=0)
    talk.packet(0, flags="S", ack=0)
    talk.packet(0, flags="SA", seq=talk.next[0] - 1)
    talk.packet(1, flags="SA", seq=talk.next[1] - 1)
    talk.exchange(5)


def _header_of_malformed(talk: Conversation) -> None:
    """Send options with impossible lengths."""
    for octets in (
        b"\x08\x00",
        b"\x08\x01",
        b"\x05\xff",
        b"\x03\x03\x0e\x08",
        b"\x08\x09" + bytes(8),
    ):
        padded = octets + b"\x01" * (-len(octets) % 4)
        tcp = TCP(
            sport=talk.ports[0],
            dport=talk.ports[1],
            seq=talk.next[0] % WRAP,
            ack=talk.ack[0] % WRAP,
            flags="A",
            dataofs=5 + len(padded) // 4,
        )
        ip = IP(src="10.0.1.2", dst="10.0.2.2", id=len(talk.log)) / tcp / padded
        talk.log.append(Datagram(talk.log[-1].time_ns + 1000, 4, bytes(ip)))


_TALKS = {
    "wrap": _wrapping,
    "options": _options,
    "multipath": _multipath,
    "flags": _flags,
    "resets": _resets,
    "probes": _probes,
    "ports-again": _ports_again,
    "syns-again": _syns_again,
    "holes": _holes,
    "captured-late": _captured_late,
    "big": _big,
    "leap": _leap,
    "data-in-syn": _data_in_syn,
    "both-open": _both_open,
    "options-malformed": _header_of_malformed,
}

"""Flows of FAST in situations that a bulk transfer over a steady link does not have.

Runs in the guest as root: `fast_flows.py` leaves /mnt/run/flows.json, which has for each situation
the samples of TCP_INFO of each connection.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.guest.tcp_hosts import RUN, Connection, Network, Sample, command, load, sysctl

ALPHA = 30
GAMMA = 0.5
# A frame of 1000 bytes takes 0.8 ms at 10 Mbit/s; the round trip adds 40 ms.
PACKET_US = 800
BASE_US = 40_000 + PACKET_US
RATE = "rate 10mbit"
DELAY = "delay 20ms"
SETTLED_S = 3.0
WRITTEN = (8, 45)
ROUNDS = 60
CLAMP = 20
# The sender, and its congestion control.
FLOWS = (("a", "fast"), ("d", "fast"), ("d", "fast30"))
# TCP's limit of memory in the guest: a window of ten thousand is twenty megabytes.
BUFFER_PAGES = 1 << 16
# A hundred times the rate, and so a hundred times the packets on the path.
FAST_RATE = "rate 1gbit"
FAST_ALPHA = 5000
FAST_BASE_US = 40_000 + PACKET_US / 100


class Bottleneck(Network):
    """Connections from a and from d to b, over a bottleneck between r and s."""

    def __init__(self) -> None:
        super().__init__("ar dr rs sb")

    def reset(self, bottleneck: str = RATE) -> None:
        """Restore the initial queues, and FAST's parameters."""
        self.netem("r-s", bottleneck)
        self.netem("s-b", DELAY)
        self.netem("b-s", DELAY)
        for host in self.hosts:
            sysctl(host, "net.ipv4.fast.alpha", ALPHA)
            sysctl(host, "net.ipv4.fast.gamma", round(GAMMA * 1000))
            sysctl(host, "net.ipv4.fast.base_rtt_us", 0)
            sysctl(host, "net.ipv4.tcp_no_metrics_save", 1)
            sysctl(host, "net.ipv4.tcp_timestamps", 0)

    def settled(self) -> Connection:
        """Make a connection whose window has settled; its last sample is the first to keep."""
        connection = Connection(self, "a", "b", "fast")
        connection.run(SETTLED_S)
        del connection.samples[:-1]
        return connection


def application_limited(path: Bottleneck, segments: int) -> list[Sample]:
    """In each round trip the application writes a few segments at once; nothing ever queues."""
    path.reset(bottleneck="delay 0ms")
    connection = Connection(path, "a", "b", "fast")
    for _ in range(ROUNDS):
        connection.write(segments)
        connection.run((BASE_US + PACKET_US) / 1e6, busy=False, step_s=0.0008)
    connection.abort()
    return connection.samples


def spurious_loss(path: Bottleneck, timestamps: int) -> list[Sample]:
    """Some segments overtake others, which are sent again before their ACKs arrive.

    With timestamps the sender detects it during recovery, without them by the D-SACKs after it.
    """
    path.reset()
    for host in "ab":
        sysctl(host, "net.ipv4.tcp_timestamps", timestamps)
    sysctl("a", "net.ipv4.fast.base_rtt_us", BASE_US)
    connection = path.settled()
    path.netem("s-b", "delay 1ms")
    connection.run(0.005)
    path.netem("s-b", DELAY)
    connection.run(1)
    connection.abort()
    return connection.samples


def congestion_marked(path: Bottleneck) -> list[Sample]:
    """One segment is marked by ECN instead of being dropped."""
    path.reset()
    for host in "ab":
        sysctl(host, "net.ipv4.tcp_ecn", 1)
    connection = path.settled()
    path.netem("s-b", f"{DELAY} loss 100% ecn")
    connection.run(PACKET_US / 1e6, step_s=PACKET_US / 1e6)
    path.netem("s-b", DELAY)
    connection.run(2)
    connection.abort()
    for host in "ab":
        sysctl(host, "net.ipv4.tcp_ecn", 2)
    return connection.samples


def clamped(path: Bottleneck) -> list[Sample]:
    """The route limits the window, which TCP obeys once it has metrics of the destination."""
    path.reset()
    sysctl("a", "net.ipv4.tcp_no_metrics_save", 0)
    command(f"ip route replace 10.0.3.0/24 via 10.0.0.2 cwnd lock {CLAMP}", "a")
    first = Connection(path, "a", "b", "cubic")
    first.write(1)
    first.run(0.5, busy=False)
    first.close()
    connection = path.settled()
    connection.run(0.1)
    connection.abort()
    command("ip route replace 10.0.3.0/24 via 10.0.0.2", "a")
    command("ip tcp_metrics flush", "a")
    return connection.samples


def idle(path: Bottleneck) -> list[Sample]:
    """The application pauses for two seconds during growth; base RTT is large, nothing queues."""
    path.reset(bottleneck="delay 0ms")
    sysctl("a", "net.ipv4.fast.base_rtt_us", 2**31 - 1)
    connection = Connection(path, "a", "b", "fast")
    connection.run(0.5)
    connection.run(2, busy=False)
    del connection.samples[:-1]
    connection.run(0.3, step_s=0.0001)
    connection.abort()
    return connection.samples


def _changed_under_way(path: Bottleneck, seconds: float, **parameters: int) -> list[Sample]:
    """Change a namespace's parameters after a flow has settled, and let the flow continue."""
    path.reset()
    connection = path.settled()
    for name, value in parameters.items():
        sysctl("a", f"net.ipv4.fast.{name}", value)
    connection.run(seconds)
    connection.abort()
    return connection.samples


def changed(path: Bottleneck) -> list[Sample]:
    """Alpha is 30 for three seconds, then 60, while the flow runs."""
    return _changed_under_way(path, SETTLED_S, alpha=2 * ALPHA)


def base_given(path: Bottleneck) -> list[Sample]:
    """During the flow, set its base RTT five packets' time too long."""
    return _changed_under_way(path, SETTLED_S, base_rtt_us=BASE_US + 5 * PACKET_US)


def gamma_changed(path: Bottleneck) -> list[Sample]:
    """After the flow has settled, double alpha with a gamma of a tenth."""
    return _changed_under_way(path, 0.5, gamma=100, alpha=2 * ALPHA)


def two_namespaces(path: Bottleneck) -> list[Sample]:
    """Flows of "fast" from a, where alpha is 30, and from d, where it is 90; and d's "fast30".

    Base RTT is given, because the later flow would measure the queue of the earlier one.
    """
    path.reset()
    sysctl("d", "net.ipv4.fast.alpha", 3 * ALPHA)
    for host in "ad":
        sysctl(host, "net.ipv4.fast.base_rtt_us", BASE_US)
    flows = [Connection(path, source, "b", name) for source, name in FLOWS]
    for _ in range(round(2 * SETTLED_S / 0.001)):
        for flow in flows:
            flow.fill()
        time.sleep(0.001)
        for flow in flows:
            flow.read()
    found = [flow.info() for flow in flows]
    for flow in flows:
        flow.abort()
    return found


def many_packets(path: Bottleneck) -> list[Sample]:
    """A path that holds 5001 packets, and an alpha of 5000: a window of ten thousand."""
    path.reset(bottleneck=FAST_RATE)
    sysctl("a", "net.ipv4.fast.alpha", FAST_ALPHA)
    connection = Connection(path, "a", "b", "fast", ahead=1024)
    connection.run(5)
    del connection.samples[:-200]
    connection.abort()
    return connection.samples


_PLAIN: tuple[Callable[[Bottleneck], list[Sample]], ...] = (
    congestion_marked,
    clamped,
    idle,
    changed,
    base_given,
    gamma_changed,
    two_namespaces,
    many_packets,
)
SITUATIONS: dict[str, Callable[[Bottleneck], list[Sample]]] = {
    **{each.__name__: each for each in _PLAIN},
    **{f"application_limited_{n}": partial(application_limited, segments=n) for n in WRITTEN},
    **{f"spurious_loss_{n}": partial(spurious_loss, timestamps=n) for n in (0, 1)},
}


def main() -> int:
    """Run all situations, one after the other."""
    load("tcp_fast", f"alphas={ALPHA}")
    sysctl("", "net.ipv4.tcp_mem", " ".join(3 * [str(BUFFER_PAGES)]))
    path = Bottleneck()
    found = {name: [asdict(s) for s in situation(path)] for name, situation in SITUATIONS.items()}
    (RUN / "flows.json").write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Two pairs of hosts, each with a delay of its own, across one slow link.

    l1 --- a1 --- c1 ---+              +--- d1 --- b1 --- r1
                        +- s1 ==== s2 -+
    l2 --- a2 --- c2 ---+              +--- d2 --- b2 --- r2

A pair's delay is before the slow link, as a fast link's between a and c, and between b and d.

    mn --custom two_lengths.py --topo two_lengths --switch none --controller none
"""

from typing import Any

from mininet.examples.linuxrouter import LinuxRouter
from mininet.topo import Topo

PAIRS = (1, 2)


class Router(LinuxRouter):
    """A router with routes to hosts, besides its default."""

    def config(self, hosts: dict[str, str] | None = None, **parameters: Any) -> Any:
        """Configure the node, then its routes."""
        result = super().config(**parameters)
        for network, gateway in (hosts or {}).items():
            self.cmd(f"ip route add {network} via {gateway}")
        return result


class TwoLengths(Topo):
    """Pairs l1 - r1 and l2 - r2 across s1 - s2."""

    queues = {
        "forward": [("s1", "s2")],
        "reverse": [("s2", "s1")],
        "long-forward": [("a1", "c1")],
        "long-reverse": [("b1", "d1")],
        "other-forward": [("a2", "c2")],
        "other-reverse": [("b2", "d2")],
    }
    delays = {
        "forward": [("s2", "d1"), ("s2", "d2")],
        "reverse": [("s1", "c1"), ("s1", "c2")],
        "long-forward": [("c1", "s1")],
        "long-reverse": [("d1", "s2")],
        "other-forward": [("c2", "s1")],
        "other-reverse": [("d2", "s2")],
    }

    def build(self) -> None:
        """Add the nodes and the links."""
        for end, (host, first, second) in ((1, "lac"), (2, "rbd")):
            hosts = {f"10.{end}.{n}.0/24": f"10.{end}.{n + 20}.1" for n in PAIRS}
            away = f"via 10.0.0.{3 - end}"
            self.addHost(f"s{end}", ip=None, cls=Router, hosts=hosts, defaultRoute=away)
            for n in PAIRS:
                near, middle, far = (f"10.{end}.{n + more}" for more in (0, 10, 20))
                self.addHost(f"{host}{n}", ip=f"{near}.2/24", defaultRoute=f"via {near}.1")
                away = f"via {middle}.2"
                self.addHost(f"{first}{n}", ip=None, cls=LinuxRouter, defaultRoute=away)
                hosts, away = {f"{near}.0/24": f"{middle}.1"}, f"via {far}.2"
                self.addHost(f"{second}{n}", ip=None, cls=Router, hosts=hosts, defaultRoute=away)
                self.addLink(f"{host}{n}", f"{first}{n}", params2={"ip": f"{near}.1/24"})
                for one, other, net in (
                    (f"{first}{n}", f"{second}{n}", middle),
                    (f"{second}{n}", f"s{end}", far),
                ):
                    ends = {"params1": {"ip": f"{net}.1/24"}, "params2": {"ip": f"{net}.2/24"}}
                    self.addLink(one, other, **ends)
        self.addLink("s1", "s2", params1={"ip": "10.0.0.1/24"}, params2={"ip": "10.0.0.2/24"})


topos = {"two_lengths": TwoLengths}

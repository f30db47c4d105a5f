"""A client and a server with two ways between their routers, each over a link of its own.

              +---- a ----+
    h1 --- r1             r2 --- h2
              +---- b ----+

Packets take the way over a, until a router's `routes` send them over b.

    mn --custom topologies/two_ways.py --topo two_ways --switch none --controller none
"""

from typing import Any

from mininet.examples.linuxrouter import LinuxRouter
from mininet.topo import Topo


class Router(LinuxRouter):
    """A router with one more route."""

    def config(self, route: str = "", **parameters: Any) -> Any:
        """Configure the node, then its route."""
        result = super().config(**parameters)
        self.cmd(f"ip route add {route}")
        return result


class TwoWays(Topo):
    """h1 has the address 10.0.1.2, h2 has 10.0.2.2."""

    queues = {
        "first-up": [("r1", "a")],
        "first-down": [("r2", "a")],
        "second-up": [("r1", "b")],
        "second-down": [("r2", "b")],
    }
    delays = {
        "first-up": [("a", "r2")],
        "first-down": [("a", "r1")],
        "second-up": [("b", "r2")],
        "second-down": [("b", "r1")],
    }

    def build(self) -> None:
        """Add nodes and links; those over a have the networks 10.1.1.0/24 and 10.1.2.0/24."""
        for n in (1, 2):
            self.addHost(f"h{n}", ip=f"10.0.{n}.2/24", defaultRoute=f"via 10.0.{n}.1")
            other = f"10.0.{3 - n}.0/24 via 10.1.{n}.2"
            self.addHost(f"r{n}", ip=None, cls=Router, route=other)
            self.addLink(f"h{n}", f"r{n}", params2={"ip": f"10.0.{n}.1/24"})
        for n, middle in enumerate("ab", start=1):
            back = f"10.0.1.0/24 via 10.{n}.1.1"
            ahead = f"via 10.{n}.2.1"
            self.addHost(middle, ip=None, cls=Router, route=back, defaultRoute=ahead)
            for end in (1, 2):
                ips = ({"ip": f"10.{n}.{end}.{place}/24"} for place in (1, 2))
                self.addLink(f"r{end}", middle, params1=next(ips), params2=next(ips))


topos = {"two_ways": TwoWays}

"""A host with two ways to a server, each over a link of its own.

    h1 --- a1 ======== b1 --- r --- h2
     |                        |
     +---- a2 ======== b2 ----+

The ways meet at r, so that h2 has one address. By h1's own routes all packets leave on the first.

    mn --custom topologies/two_paths.py --topo two_paths --switch none --controller none
"""

from typing import Any

from mininet.examples.linuxrouter import LinuxRouter
from mininet.topo import Topo


class Router(LinuxRouter):
    """A router with routes to h1's networks."""

    def config(self, back: tuple[str, ...] = (), **parameters: Any) -> Any:
        """Configure the node, then its routes."""
        result = super().config(**parameters)
        for route in back:
            self.cmd(f"ip route add {route}")
        return result


class TwoPaths(Topo):
    """h1 has the addresses 10.1.0.2 and 10.2.0.2, the server h2 has 10.0.0.2."""

    queues = {
        "first-up": [("a1", "b1")],
        "first-down": [("b1", "a1")],
        "second-up": [("a2", "b2")],
        "second-down": [("b2", "a2")],
    }
    delays = {
        "first-up": [("b1", "r")],
        "first-down": [("a1", "h1")],
        "second-up": [("b2", "r")],
        "second-down": [("a2", "h1")],
    }

    def build(self) -> None:
        """Add nodes and links; the links of path N have the networks 10.N.0.0/24 to 10.N.2.0/24."""
        back = tuple(f"10.{n}.0.0/24 via 10.{n}.2.1" for n in (1, 2))
        self.addHost("h1", ip="10.1.0.2/24", defaultRoute="via 10.1.0.1")
        self.addHost("h2", ip="10.0.0.2/24", defaultRoute="via 10.0.0.1")
        self.addHost("r", ip=None, cls=Router, back=back)
        for n in (1, 2):
            a, b, net = f"a{n}", f"b{n}", f"10.{n}"
            self.addHost(a, ip=None, cls=LinuxRouter, defaultRoute=f"via {net}.1.2")
            near = (f"{net}.0.0/24 via {net}.1.1",)
            self.addHost(b, ip=None, cls=Router, back=near, defaultRoute=f"via {net}.2.2")
            for link, ends in enumerate((("h1", a), (b, a), (b, "r"))):
                first, second = (2, 1) if link < 2 else (1, 2)
                one, other = ({"ip": f"{net}.{link}.{end}/24"} for end in (first, second))
                self.addLink(*ends, params1=one, params2=other)
        self.addLink("h2", "r", params2={"ip": "10.0.0.1/24"})


topos = {"two_paths": TwoPaths}

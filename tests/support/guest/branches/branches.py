"""One server, and clients that each have a link of their own kind.

             +--- j1 ==== k1 --- c1
    sv --- s +--- j2 ==== k2 --- c2
             +--- jn ==== kn --- cn

mn --custom branches.py --topo branches,3 --switch none --controller none
"""

from typing import Any

from mininet.examples.linuxrouter import LinuxRouter
from mininet.topo import Topo


class Router(LinuxRouter):
    """A router with a route to each client."""

    def config(self, routes: tuple[str, ...] = (), **parameters: Any) -> None:
        """Configure the node, then its routes."""
        super().config(**parameters)
        for route in routes:
            self.cmd(f"ip route add {route}")


class Branches(Topo):
    """A server and `branches` clients; client n has the directions downN and upN of the profile."""

    def build(self, branches: int = 3) -> None:
        """Add the nodes and the links."""
        numbers = range(1, branches + 1)
        self.queues = {f"down{n}": [(f"j{n}", f"k{n}")] for n in numbers}
        self.queues |= {f"up{n}": [(f"k{n}", f"j{n}")] for n in numbers}
        self.delays = {f"down{n}": [(f"k{n}", f"c{n}")] for n in numbers}
        self.delays |= {f"up{n}": [(f"j{n}", "s")] for n in numbers}
        routes = tuple(f"10.2.{n}.0/24 via 10.3.{n}.2" for n in numbers)
        self.addHost("sv", ip="10.0.0.2/24", defaultRoute="via 10.0.0.1")
        self.addHost("s", ip=None, cls=Router, routes=routes)
        self.addLink("sv", "s", params2={"ip": "10.0.0.1/24"})
        for n in numbers:
            back = (f"10.2.{n}.0/24 via 10.1.{n}.2",)
            self.addHost(f"j{n}", ip=None, cls=Router, defaultRoute=f"via 10.3.{n}.1", routes=back)
            self.addHost(f"k{n}", ip=None, cls=LinuxRouter, defaultRoute=f"via 10.1.{n}.1")
            self.addHost(f"c{n}", ip=f"10.2.{n}.2/24", defaultRoute=f"via 10.2.{n}.1")
            for net, one, two in ((3, "s", f"j{n}"), (1, f"j{n}", f"k{n}")):
                ends = {f"params{end}": {"ip": f"10.{net}.{n}.{end}/24"} for end in (1, 2)}
                self.addLink(one, two, **ends)
            self.addLink(f"c{n}", f"k{n}", params2={"ip": f"10.2.{n}.1/24"})


topos = {"branches": Branches}

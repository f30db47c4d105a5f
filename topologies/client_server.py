"""One server and several clients, each with a channel of its own.

                 +==== k1 --- c1
    sv --- s ====+==== k2 --- c2
                 +==== kn --- cn
             channels

Kalampoukas, Varma and Ramakrishnan (1998), figure 5.14. Their server keeps a queue for each
channel; here its router s does, because Linux never builds a queue on the sending host itself
(TCP small queues).

    mn --custom topologies/client_server.py --topo client_server,3 --switch none --controller none
"""

from typing import Any

from mininet.examples.linuxrouter import LinuxRouter
from mininet.topo import Topo


class ServerRouter(LinuxRouter):
    """The server's router, with a route to each client."""

    def config(self, clients: int = 0, **parameters: Any) -> Any:
        """Configure the node, then its routes."""
        result = super().config(**parameters)
        for n in range(1, clients + 1):
            self.cmd(f"ip route add 10.2.{n}.0/24 via 10.1.{n}.2")
        return result


class ClientServer(Topo):
    """`clients` hosts c1..cn, each behind a router k1..kn, around sv's router s."""

    def build(self, clients: int = 3) -> None:
        """Add the nodes and the links.

        Args:
            clients: how many, 1..50.
        """
        if not 1 <= clients <= 50:
            raise ValueError(f"clients must be 1..50, got {clients}")
        numbers = range(1, clients + 1)
        self.queues = {
            "down": [("s", f"k{n}") for n in numbers],
            "up": [(f"k{n}", "s") for n in numbers],
        }
        self.delays = {"down": [(f"k{n}", f"c{n}") for n in numbers], "up": [("s", "sv")]}
        self.addHost("sv", ip="10.0.0.2/24", defaultRoute="via 10.0.0.1")
        self.addHost("s", ip=None, cls=ServerRouter, clients=clients)
        self.addLink("sv", "s", params2={"ip": "10.0.0.1/24"})
        for n in numbers:
            away = f"via 10.1.{n}.1"
            self.addHost(f"k{n}", ip=None, cls=LinuxRouter, defaultRoute=away)
            self.addHost(f"c{n}", ip=f"10.2.{n}.2/24", defaultRoute=f"via 10.2.{n}.1")
            ends = {f"params{end}": {"ip": f"10.1.{n}.{end}/24"} for end in (1, 2)}
            self.addLink("s", f"k{n}", **ends)
            self.addLink(f"c{n}", f"k{n}", params2={"ip": f"10.2.{n}.1/24"})


topos = {"client_server": ClientServer}

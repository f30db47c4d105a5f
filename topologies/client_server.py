"""One server and several clients, each with a channel of its own.

              +--- j1 ==== k1 --- c1
    sv --- s -+--- j2 ==== k2 --- c2
              +--- jn ==== kn --- cn
                  channels

Kalampoukas, Varma and Ramakrishnan (1998), figure 5.14. Their server keeps a queue for each
channel; here a router for each channel has it, because Linux never builds a queue on the sending
host itself (TCP small queues).

    mn --custom topologies/client_server.py --topo client_server,3 --switch none --controller none
"""

from typing import Any

from mininet.examples.linuxrouter import LinuxRouter
from mininet.topo import Topo


class ChannelRouter(LinuxRouter):
    """A router with routes away from its default route."""

    def config(self, routes: tuple[str, ...] = (), **parameters: Any) -> Any:
        """Configure the node, then its routes."""
        result = super().config(**parameters)
        for route in routes:
            self.cmd(f"ip route add {route}")
        return result


class ClientServer(Topo):
    """A server and `clients` hosts c1..cn, each behind its own channel."""

    def build(self, clients: int = 3) -> None:
        """Add the nodes and the links.

        Args:
            clients: number of clients, 1..50.
        """
        if not 1 <= clients <= 50:
            raise ValueError(f"clients must be 1..50, got {clients}")
        numbers = range(1, clients + 1)
        self.queues = {
            "down": [(f"j{n}", f"k{n}") for n in numbers],
            "up": [(f"k{n}", f"j{n}") for n in numbers],
        }
        self.delays = {
            "down": [(f"k{n}", f"c{n}") for n in numbers],
            "up": [(f"j{n}", "s") for n in numbers],
        }
        self.addHost("sv", ip="10.0.0.2/24", defaultRoute="via 10.0.0.1")
        down = tuple(f"10.2.{n}.0/24 via 10.3.{n}.2" for n in numbers)
        self.addHost("s", ip=None, cls=ChannelRouter, routes=down)
        self.addLink("sv", "s", params2={"ip": "10.0.0.1/24"})
        for n in numbers:
            self._add_channel(n)

    def _add_channel(self, n: int) -> None:
        up, down = f"via 10.3.{n}.1", (f"10.2.{n}.0/24 via 10.1.{n}.2",)
        self.addHost(f"j{n}", ip=None, cls=ChannelRouter, defaultRoute=up, routes=down)
        self.addHost(f"k{n}", ip=None, cls=LinuxRouter, defaultRoute=f"via 10.1.{n}.1")
        self.addHost(f"c{n}", ip=f"10.2.{n}.2/24", defaultRoute=f"via 10.2.{n}.1")
        for net, one, two in ((3, "s", f"j{n}"), (1, f"j{n}", f"k{n}")):
            ends = {f"params{end}": {"ip": f"10.{net}.{n}.{end}/24"} for end in (1, 2)}
            self.addLink(one, two, **ends)
        self.addLink(f"c{n}", f"k{n}", params2={"ip": f"10.2.{n}.1/24"})


topos = {"client_server": ClientServer}

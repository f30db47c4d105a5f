"""Four nodes on a DTM bus: two of them send, each over a channel to another node.

    h1 --- n1 ====one====> n3 --- h3
    h2 --- n2 ====two====> n4 --- h4

The bus has a number of slots, which both channels share, though each is in its node's network
namespace. n3 and n4 send back over links of their own.

    mn --custom topologies/dtm_bus.py --topo dtm_bus --switch none --controller none
"""

from mininet.examples.linuxrouter import LinuxRouter
from mininet.topo import Topo


class DtmBus(Topo):
    """h1, h2 - n1, n2 - n3, n4 - h3, h4, routed."""

    queues = {
        "one": [("n1", "n3")],
        "two": [("n2", "n4")],
        "back": [("n3", "n1"), ("n4", "n2")],
    }
    delays = {
        "one": [("n3", "h3")],
        "two": [("n4", "h4")],
        "back": [("n1", "h1"), ("n2", "h2")],
    }

    def build(self) -> None:
        """Add the nodes and the links."""
        for n in (1, 2, 3, 4):
            route = f"via 10.1.{n}.2" if n <= 2 else f"via 10.1.{n - 2}.1"
            self.addHost(f"n{n}", ip=None, cls=LinuxRouter, defaultRoute=route)
            subnet = f"10.0.{n}"
            self.addHost(f"h{n}", ip=f"{subnet}.2/24", defaultRoute=f"via {subnet}.1")
            self.addLink(f"h{n}", f"n{n}", params2={"ip": f"{subnet}.1/24"})
        for n in (1, 2):
            addresses = {f"params{end}": {"ip": f"10.1.{n}.{end}/24"} for end in (1, 2)}
            self.addLink(f"n{n}", f"n{n + 2}", **addresses)


topos = {"dtm_bus": DtmBus}

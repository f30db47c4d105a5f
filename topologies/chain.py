"""A path of several bottlenecks in a row; the last is the slowest.

    h1 --- r1 ======== r2 ======== ... r(n+1) ============ r(n+2) --- h2
              node1       node2               bottleneck
                                            < return

Barakat and Altman (2000), figure 1: the router that feeds node i is their N_i, the one that feeds
`bottleneck` their N, and without nodes the path is their single-node model. A profile always has
ten nodes as directions; those beyond `nodes` are not built, so that one profile serves paths of
every length.

    mn --custom topologies/chain.py --topo chain,3 --switch none --controller none
"""

from typing import Any

from mininet.examples.linuxrouter import LinuxRouter
from mininet.topo import Topo

MOST_NODES = 10


class ChainRouter(LinuxRouter):
    """A router whose default route leads away from h1, with a route back."""

    def config(self, back: str | None = None, **parameters: Any) -> Any:
        """Configure the node, and its route to h1 through the gateway `back`."""
        result = super().config(**parameters)
        if back:
            self.cmd(f"ip route add 10.0.1.0/24 via {back}")
        return result


class Chain(Topo):
    """h1 - r1 - ... - r(nodes + 2) - h2, routed."""

    def build(self, nodes: int = 1) -> None:
        """Add the nodes and the links.

        Args:
            nodes: bottlenecks before the last, 0..10.
        """
        if not 0 <= nodes <= MOST_NODES:
            raise ValueError(f"nodes must be 0..{MOST_NODES}, got {nodes}")
        before, after = f"r{nodes + 1}", f"r{nodes + 2}"
        self.queues = {
            f"node{i}": [(f"r{i}", f"r{i + 1}")] if i <= nodes else []
            for i in range(1, MOST_NODES + 1)
        }
        self.queues |= {"bottleneck": [(before, after)], "return": [(after, before)]}
        # All of the path's delay lies at its ends, where it can neither fill nor thin out a queue.
        self.delays = {"bottleneck": [(after, "h2")], "return": [("r1", "h1")]}
        self.addHost("h1", ip="10.0.1.2/24", defaultRoute="via 10.0.1.1")
        self.addHost("h2", ip="10.0.2.2/24", defaultRoute="via 10.0.2.1")
        for number in range(1, nodes + 2):
            back = f"10.1.{number - 1}.1" if number > 1 else None
            away = f"via 10.1.{number}.2"
            self.addHost(f"r{number}", ip=None, cls=ChainRouter, defaultRoute=away, back=back)
        self.addHost(after, ip=None, cls=ChainRouter, defaultRoute=f"via 10.1.{nodes + 1}.1")
        self.addLink("h1", "r1", params2={"ip": "10.0.1.1/24"})
        for number in range(1, nodes + 2):
            ends = {f"params{end}": {"ip": f"10.1.{number}.{end}/24"} for end in (1, 2)}
            self.addLink(f"r{number}", f"r{number + 1}", **ends)
        self.addLink("h2", after, params2={"ip": "10.0.2.1/24"})


topos = {"chain": Chain}

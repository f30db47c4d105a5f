"""Two hosts and the rate-controlled channel between them.

    h1 --------- r1 ============ r2 --------- h2
       access       bottleneck       access

Kalampoukas, Varma and Ramakrishnan's two end systems (1998, figure 2.2) and Zhang, Shenker
and Clark's two switches (1991, figure 1). The end system's outgoing queue is the router's,
because Linux never builds a queue on the sending host itself (TCP small queues).

    mn --custom topologies/two_node.py --topo two_node --switch none --controller none
"""

from mininet.examples.linuxrouter import LinuxRouter
from mininet.topo import Topo


class TwoNode(Topo):
    """h1 - r1 - r2 - h2, routed."""

    # The places at which a profile's directions take effect: (node, towards) names the interface of
    # `node` that faces `towards`.
    queues = {"forward": [("r1", "r2")], "reverse": [("r2", "r1")]}
    delays = {"forward": [("r2", "h2")], "reverse": [("r1", "h1")]}

    def build(self) -> None:
        """Add nodes and links; each router is the other's default route."""
        self.addHost("h1", ip="10.0.1.2/24", defaultRoute="via 10.0.1.1")
        self.addHost("h2", ip="10.0.2.2/24", defaultRoute="via 10.0.2.1")
        self.addHost("r1", ip=None, cls=LinuxRouter, defaultRoute="via 10.0.0.2")
        self.addHost("r2", ip=None, cls=LinuxRouter, defaultRoute="via 10.0.0.1")
        self.addLink("h1", "r1", params2={"ip": "10.0.1.1/24"})
        self.addLink("h2", "r2", params2={"ip": "10.0.2.1/24"})
        self.addLink("r1", "r2", params1={"ip": "10.0.0.1/24"}, params2={"ip": "10.0.0.2/24"})


topos = {"two_node": TwoNode}

"""Any number of hosts at both ends of one bottleneck.

l1 --+                    +-- r1
l2 --+-- s1 ======== s2 --+-- r2
ln --+    bottleneck      +-- rn

mn --custom topologies/dumbbell.py --topo dumbbell,3 --switch none --controller none
"""

from mininet.examples.linuxrouter import LinuxRouter
from mininet.topo import Topo


class Dumbbell(Topo):
    """`pairs` hosts at each end: l1..ln behind router s1, r1..rn behind router s2."""

    queues = {"forward": [("s1", "s2")], "reverse": [("s2", "s1")]}

    def build(self, pairs: int = 2) -> None:
        """Add the nodes and the links.

        Args:
            pairs: number of hosts at each end, 1..250.
        """
        if not 1 <= pairs <= 250:
            raise ValueError(f"pairs must be 1..250, got {pairs}")
        self.delays = {
            "forward": [("s2", f"r{n}") for n in range(1, pairs + 1)],
            "reverse": [("s1", f"l{n}") for n in range(1, pairs + 1)],
        }
        self.addHost("s1", ip=None, cls=LinuxRouter, defaultRoute="via 10.0.0.2")
        self.addHost("s2", ip=None, cls=LinuxRouter, defaultRoute="via 10.0.0.1")
        for side, router, net in (("l", "s1", 1), ("r", "s2", 2)):
            for n in range(1, pairs + 1):
                subnet = f"10.{net}.{n}"
                self.addHost(f"{side}{n}", ip=f"{subnet}.2/24", defaultRoute=f"via {subnet}.1")
                self.addLink(f"{side}{n}", router, params2={"ip": f"{subnet}.1/24"})
        self.addLink("s1", "s2", params1={"ip": "10.0.0.1/24"}, params2={"ip": "10.0.0.2/24"})


topos = {"dumbbell": Dumbbell}

"""A TCP path over a DTM channel, with the bottleneck before it.

    h1 --- r1 ------- r2 ============ r3 ######### r4 --- h5
              access     bottleneck      channel
                                       < return

Abrahamsson, Hagsand and Marsh (2002), figure 3: their nodes one to five are h1, r2, r3, r4 and
h5. r1 is one hop more than theirs, for the queue of node one's link: Linux never builds one on
the sending host itself (TCP small queues).

    mn --custom topologies/dtm_path.py --topo dtm_path --switch none --controller none
"""

from typing import Any

from mininet.examples.linuxrouter import LinuxRouter
from mininet.topo import Topo


class PathRouter(LinuxRouter):
    """A router whose default route leads away from h1, with a route back."""

    def config(self, back: str | None = None, **parameters: Any) -> Any:
        """Configure the node, and its route to h1 through the gateway `back`."""
        result = super().config(**parameters)
        if back:
            self.cmd(f"ip route add 10.0.1.0/24 via {back}")
        return result


class DtmPath(Topo):
    """h1 - r1 - r2 - r3 - r4 - h5, routed."""

    queues = {
        "access": [("r1", "r2")],
        "bottleneck": [("r2", "r3")],
        "channel": [("r3", "r4")],
        "return": [("r4", "r3")],
    }
    # All of the path's delay lies at its ends, where it can neither fill nor thin out a queue.
    delays = {"channel": [("r4", "h5")], "return": [("r1", "h1")]}

    def build(self) -> None:
        """Add the nodes and the links."""
        self.addHost("h1", ip="10.0.1.2/24", defaultRoute="via 10.0.1.1")
        self.addHost("h5", ip="10.0.5.2/24", defaultRoute="via 10.0.5.1")
        for number in (1, 2, 3):
            back = f"10.1.{number - 1}.1" if number > 1 else None
            away = f"via 10.1.{number}.2"
            self.addHost(f"r{number}", ip=None, cls=PathRouter, defaultRoute=away, back=back)
        self.addHost("r4", ip=None, cls=PathRouter, defaultRoute="via 10.1.3.1")
        self.addLink("h1", "r1", params2={"ip": "10.0.1.1/24"})
        for number in (1, 2, 3):
            ends = {f"params{end}": {"ip": f"10.1.{number}.{end}/24"} for end in (1, 2)}
            self.addLink(f"r{number}", f"r{number + 1}", **ends)
        self.addLink("h5", "r4", params2={"ip": "10.0.5.1/24"})


topos = {"dtm_path": DtmPath}

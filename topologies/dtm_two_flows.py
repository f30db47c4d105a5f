"""Two TCP flows, each with its own bottleneck, share a DTM channel.

    h1 --- r1 ==========+                             +--- h3
              bottleneck-1                            |
                        r3 ======== r4 ######### r5 --+
              bottleneck-2  feeder     channel        |
    h2 --- r2 ==========+            < return         +--- h4

Abrahamsson, Hagsand and Marsh (2002), figure 7: their node two is r1, r2 and r3, with an input
buffer for each flow and a common, small output buffer; nodes three and four are r4 and r5.

    mn --custom topologies/dtm_two_flows.py --topo dtm_two_flows --switch none --controller none
"""

from typing import Any

from mininet.examples.linuxrouter import LinuxRouter
from mininet.topo import Topo


class FlowsRouter(LinuxRouter):
    """A router whose default route leads away from h1 and h2.

    Routes lead back to h1 and h2.
    """

    def config(self, back: dict[str, str] | None = None, **parameters: Any) -> Any:
        """Configure the node and its routes.

        Args:
            back: gateways by network.
            parameters: passed on to Mininet.
        """
        result = super().config(**parameters)
        for network, gateway in (back or {}).items():
            self.cmd(f"ip route add {network} via {gateway}")
        return result


class DtmTwoFlows(Topo):
    """h1, h2 - r1, r2 - r3 - r4 - r5 - h3, h4, routed."""

    queues = {
        "bottleneck": [("r1", "r3"), ("r2", "r3")],
        "feeder": [("r3", "r4")],
        "channel": [("r4", "r5")],
        "return": [("r5", "r4")],
    }
    # All of the path's delay lies at its ends, where it can neither fill nor thin out a queue.
    delays = {
        "channel": [("r5", "h3"), ("r5", "h4")],
        "return": [("r1", "h1"), ("r2", "h2")],
    }

    def build(self) -> None:
        """Add the nodes and the links."""
        for n, (router, away) in enumerate((("r1", "10.1.1.2"), ("r2", "10.1.2.2")), start=1):
            self._router(router, away)
            self._host(n, router)
        self._router("r3", "10.1.3.2", {"10.0.1.0/24": "10.1.1.1", "10.0.2.0/24": "10.1.2.1"})
        back = {f"10.0.{n}.0/24": "10.1.3.1" for n in (1, 2)}
        self._router("r4", "10.1.4.2", back)
        self._router("r5", "10.1.4.1")
        for n in (3, 4):
            self._host(n, "r5")
        ends = (("r1", "r3"), ("r2", "r3"), ("r3", "r4"), ("r4", "r5"))
        for n, (near, far) in enumerate(ends, start=1):
            addresses = {f"params{end}": {"ip": f"10.1.{n}.{end}/24"} for end in (1, 2)}
            self.addLink(near, far, **addresses)

    def _router(self, name: str, away: str, back: dict[str, str] | None = None) -> None:
        self.addHost(name, ip=None, cls=FlowsRouter, defaultRoute=f"via {away}", back=back)

    def _host(self, number: int, router: str) -> None:
        subnet = f"10.0.{number}"
        self.addHost(f"h{number}", ip=f"{subnet}.2/24", defaultRoute=f"via {subnet}.1")
        self.addLink(f"h{number}", router, params2={"ip": f"{subnet}.1/24"})


topos = {"dtm_two_flows": DtmTwoFlows}

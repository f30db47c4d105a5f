"""Three pairs of hosts whose channels share one trunk.

    l1 --- a1 ====+              +==== b1 --- r1
    l2 --- a2 ====+- s1 ---- s2 -+==== b2 --- r2
    l3 --- a3 ====+              +==== b3 --- r3
            channels    trunk    channels

Kalampoukas, Varma and Ramakrishnan (1998), figure 5.9, their configuration R-1: the first two
pairs' channels are long, the third's is short. Their nodes 1L to 3R are l1 to r3; each queues in
the router next to it, because Linux never builds a queue on the sending host itself (TCP small
queues). The trunk has neither a rate nor a queue: the authors' trunk carries cells, so that
channels whose rates fit into it interleave and no segment waits for one of another channel.

    mn --custom topologies/r1.py --topo r1 --switch none --controller none
"""

from typing import Any

from mininet.examples.linuxrouter import LinuxRouter
from mininet.topo import Topo

LONG, SHORT = (1, 2), (3,)


class TrunkRouter(LinuxRouter):
    """A router at one end of the trunk, with a route to each host at that end."""

    def config(self, side: int = 1, **parameters: Any) -> Any:
        """Configure the node, then its routes."""
        result = super().config(**parameters)
        for pair in (*LONG, *SHORT):
            self.cmd(f"ip route add 10.{side}.{pair}.0/24 via 10.{side}.{pair + 10}.1")
        return result


class R1(Topo):
    """Pairs l1 - r1, l2 - r2 and l3 - r3 across s1 - s2."""

    queues = {
        "long-forward": [(f"a{n}", "s1") for n in LONG],
        "short-forward": [(f"a{n}", "s1") for n in SHORT],
        "long-reverse": [(f"b{n}", "s2") for n in LONG],
        "short-reverse": [(f"b{n}", "s2") for n in SHORT],
    }
    # A channel's delay lies behind the trunk, at the far end of the pair.
    delays = {
        "long-forward": [(f"b{n}", f"r{n}") for n in LONG],
        "short-forward": [(f"b{n}", f"r{n}") for n in SHORT],
        "long-reverse": [(f"a{n}", f"l{n}") for n in LONG],
        "short-reverse": [(f"a{n}", f"l{n}") for n in SHORT],
    }

    def build(self) -> None:
        """Add the nodes and the links."""
        for trunk, side in (("s1", 1), ("s2", 2)):
            away = f"via 10.0.0.{3 - side}"
            self.addHost(trunk, ip=None, cls=TrunkRouter, side=side, defaultRoute=away)
        for host, router, trunk, side in (("l", "a", "s1", 1), ("r", "b", "s2", 2)):
            for pair in (*LONG, *SHORT):
                near, far = f"10.{side}.{pair}", f"10.{side}.{pair + 10}"
                self.addHost(f"{host}{pair}", ip=f"{near}.2/24", defaultRoute=f"via {near}.1")
                self.addHost(
                    f"{router}{pair}", ip=None, cls=LinuxRouter, defaultRoute=f"via {far}.2"
                )
                self.addLink(f"{host}{pair}", f"{router}{pair}", params2={"ip": f"{near}.1/24"})
                ends = {f"params{end}": {"ip": f"{far}.{end}/24"} for end in (1, 2)}
                self.addLink(f"{router}{pair}", trunk, **ends)
        self.addLink("s1", "s2", params1={"ip": "10.0.0.1/24"}, params2={"ip": "10.0.0.2/24"})


topos = {"r1": R1}

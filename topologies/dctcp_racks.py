"""Two racks of senders with two bottlenecks in a row: the trunk, and the port of one receiver.

    s1h1 ..10 --+                     +-- s3h1 ..10
                t1 ======== t2 ------ +-- r2h1 ..20
    s2h1 ..20 --+   trunk   |
                            +======== n1 --- r1
                               port

Alizadeh et al. (2010), figure 17: t1 and t2 are their switches Triumph 1 and 2, and the senders S1
and S3 all send to R1, each of S2 to its own R2. Their switch Scorpion between t1 and t2 is left
out: both of its links have the trunk's rate, so that nothing waits in it. The node n1 stands for
R1's network card, which sends R1's ACKs at the link's rate (`card`) and is the place of the port's
delay. The other hosts' links have no rate: their delay includes the transmission times.

    mn --custom topologies/dctcp_racks.py --topo dctcp_racks --switch none --controller none
"""

from typing import Any

from mininet.examples.linuxrouter import LinuxRouter
from mininet.topo import Topo

# Hosts at each switch, by the group's name.
AT_T1, AT_T2 = {"s1": 10, "s2": 20}, {"s3": 10, "r2": 20}
T1, T2 = "10.0.0.1", "10.0.0.2"
# t2's link to n1, and the network of R1 behind n1.
TO_N1, R1 = "10.0.1", "10.0.2"


def hosts(groups: dict[str, int]) -> list[str]:
    """List the hosts of groups, as s1h1."""
    return [
        f"{group}h{number}" for group, count in groups.items() for number in range(1, count + 1)
    ]


class Switch(LinuxRouter):
    """A router with a route to the hosts of the other rack, and one to R1."""

    def config(self, routes: tuple[str, ...] = (), **parameters: Any) -> Any:
        """Configure the node, then its routes."""
        result = super().config(**parameters)
        for route in routes:
            self.cmd(f"ip route add {route}")
        return result


class DctcpRacks(Topo):
    """S1 and S2 at t1, S3, R2 and R1 at t2."""

    queues = {
        "trunk": [("t1", "t2")],
        "trunk-back": [("t2", "t1")],
        "port": [("t2", "n1")],
        "card": [("n1", "t2")],
    }
    delays = {
        "trunk": [("t2", host) for host in hosts({"r2": AT_T2["r2"]})],
        "trunk-back": [("t1", host) for host in hosts(AT_T1)],
        "port": [("n1", "r1")],
        "card": [("t2", host) for host in hosts({"s3": AT_T2["s3"]})],
    }

    def build(self) -> None:
        """Add the nodes and the links."""
        beyond = (f"10.1.0.0/16 via {T1}", f"{R1}.0/24 via {TO_N1}.2")
        self.addHost("t1", ip=None, cls=Switch, routes=(f"default via {T2}",))
        self.addHost("t2", ip=None, cls=Switch, routes=beyond)
        self.addHost("n1", ip=None, cls=LinuxRouter, defaultRoute=f"via {TO_N1}.1")
        self.addLink("t1", "t2", params1={"ip": f"{T1}/24"}, params2={"ip": f"{T2}/24"})
        ends = {f"params{end}": {"ip": f"{TO_N1}.{end}/24"} for end in (1, 2)}
        self.addLink("t2", "n1", **ends)
        self.addHost("r1", ip=f"{R1}.2/24", defaultRoute=f"via {R1}.1")
        self.addLink("r1", "n1", params2={"ip": f"{R1}.1/24"})
        for rack, (switch, groups) in enumerate((("t1", AT_T1), ("t2", AT_T2)), start=1):
            for number, host in enumerate(hosts(groups)):
                net = f"10.{rack}.{number}"
                self.addHost(host, ip=f"{net}.2/24", defaultRoute=f"via {net}.1")
                self.addLink(host, switch, params2={"ip": f"{net}.1/24"})


topos = {"dctcp_racks": DctcpRacks}

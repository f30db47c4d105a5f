"""The network of Mininet's example linuxrouter.py: a router between three switches.

h1 --- s1 ====== r0 ====== s2 --- h2
|
s3 --- h3

mn --custom topologies/linuxrouter.py --topo linuxrouter --switch lxbr --controller none
"""

from mininet.examples.linuxrouter import NetworkTopo


class RoutedSwitches(NetworkTopo):
    """The example's class, unchanged, with the places of queues and delays."""

    queues = {"forward": [("r0", "s2")], "reverse": [("r0", "s1")]}
    delays = {"forward": [("s2", "h2")], "reverse": [("s1", "h1")]}


topos = {"linuxrouter": RoutedSwitches}

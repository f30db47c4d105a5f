"""Mininet's own LinearTopo: hosts on switches in a row, with a bottleneck in each direction.

h1 --- s1 ============ s2 --- s3 --- h3
bottleneck  |
h2

mn --custom topologies/linear.py --topo linear --switch lxbr --controller none
"""

from mininet.topo import LinearTopo


class Linear(LinearTopo):
    """Three or more switches, each with one or more hosts."""

    # Each direction's queue is before its delay, and no interface has both.
    queues = {"forward": [("s1", "s2")], "reverse": [("s3", "s2")]}
    delays = {"forward": [("s2", "s3")], "reverse": [("s2", "s1")]}

    def build(self, k: int = 3, n: int = 1) -> None:
        """Add k switches with n hosts each."""
        super().build(k=k, n=n)


topos = {"linear": Linear}

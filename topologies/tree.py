"""Mininet's own TreeTopo: hosts below switches, with a bottleneck in each direction at the root.

h1 --- s2 ====== s1 ====== s3 --- h3
h2 ----+                    +---- h4

mn --custom topologies/tree.py --topo tree --switch lxbr --controller none
"""

from mininet.topolib import TreeTopo


class Tree(TreeTopo):
    """A tree of depth 2, with two hosts below each of two switches."""

    queues = {"forward": [("s2", "s1")], "reverse": [("s3", "s1")]}
    delays = {"forward": [("s1", "s3")], "reverse": [("s1", "s2")]}

    def build(self, depth: int = 2, fanout: int = 2) -> None:
        """Add switches and hosts."""
        super().build(depth=depth, fanout=fanout)


topos = {"tree": Tree}

"""Assign the ends of connections to two sides of the tap.

The module also finds connections between the same hosts.
"""

import numpy as np

from capture_analysis.columns import IntArray
from capture_analysis.flow_table import FlowTable

Host = bytes


class Sides:
    """Two sides of the tap; the ends of a connection are on different ones.

    Groups of hosts without any connections between them are assigned by guess: the source of the
    first connection of each group is on side 0.
    """

    def __init__(self, flows: FlowTable) -> None:
        self._side: dict[Host, int] = {}
        self._first: dict[tuple[Host, Host], int] = {}
        for flow, ends in enumerate(host_pairs(flows)):
            self._first.setdefault(ends, flow)
        neighbours: dict[Host, list[Host]] = {}
        for source, destination in self._first:
            neighbours.setdefault(source, []).append(destination)
            neighbours.setdefault(destination, []).append(source)
        for source, _ in self._first:
            reached = [source]
            self._side.setdefault(source, 0)
            while reached:
                host = reached.pop()
                for other in neighbours[host]:
                    if other not in self._side:
                        self._side[other] = 1 - self._side[host]
                        reached.append(other)

    def origins(self, flows: FlowTable) -> IntArray:
        """Return the side of each direction's sender, (2 * flows,)."""
        side = self._side
        half_0 = np.array(
            [
                side[source] if source in side else 1 - side.get(destination, 1)
                for source, destination in host_pairs(flows)
            ],
            dtype=np.int64,
        )
        return np.stack((half_0, 1 - half_0), axis=1).ravel()

    def between_same_hosts(self, flows: FlowTable) -> IntArray:
        """Find a known direction between the same hosts, or -1; (2 * flows,)."""
        found = np.full(2 * len(flows), -1)
        for flow, (source, destination) in enumerate(host_pairs(flows)):
            for turned, ends in enumerate(((source, destination), (destination, source))):
                if ends in self._first:
                    direction = 2 * self._first[ends] + turned
                    found[2 * flow : 2 * flow + 2] = direction, direction ^ 1
        return found


def host_pairs(flows: FlowTable) -> list[tuple[Host, Host]]:
    """Return the addresses of each connection's source and destination."""
    ends = []
    for end in ("source", "destination"):
        packed = flows.rows[end].tobytes()
        ends.append([packed[at : at + 16] for at in range(0, len(packed), 16)])
    return list(zip(*ends, strict=True))


def path_numbers(flows: FlowTable) -> IntArray:
    """Return the number of each direction's ordered pair of hosts, (2 * flows,)."""
    ends = np.stack((flows.rows["source"], flows.rows["destination"]), axis=1)
    both = np.stack((ends, ends[:, ::-1]), axis=1).reshape(2 * len(flows), 32)
    keys = np.ascontiguousarray(both).view("V32").ravel()
    found: IntArray = np.unique(keys, return_inverse=True)[1].reshape(-1)
    return found


def one_pair(flows: FlowTable) -> bool:
    """Tell whether all connections are between the same two hosts."""
    ends = np.stack((flows.rows["source"], flows.rows["destination"]), axis=1)
    first = ends[:1]
    same, turned = ((ends == each).all(axis=(1, 2)) for each in (first, first[:, ::-1]))
    return bool((same | turned).all())

"""Common numbers for the connections of several captures."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from capture_analysis.columns import IntArray
from capture_analysis.flow_table import FLOW, FlowTable


@dataclass
class _Known:
    """A connection of the common table, with the ISNs that were seen."""

    index: int
    source: tuple[bytes, int]
    vlans: bytes
    isn: dict[tuple[bytes, int], int]

    def agrees(self, isn: dict[tuple[bytes, int], int]) -> bool | None:
        """Compare the ISNs that both have; return None if there are none to compare."""
        both = self.isn.keys() & isn.keys()
        return all(self.isn[end] == isn[end] for end in both) if both else None


class CommonFlows:
    """Assigns common numbers to the connections of several captures, one capture after another.

    Connections of two captures are the same if their ends are equal and, if ports were used again,
    their SYNs. If no SYN can be compared, their VLANs, which may differ between taps, and then the
    order of appearance decide.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], list[_Known]] = {}
        self._rows: list[np.void] = []

    @property
    def table(self) -> FlowTable:
        """The common table: each connection's row from the first capture that has it."""
        return FlowTable(np.array(self._rows, dtype=FLOW))

    def add(self, table: FlowTable) -> tuple[IntArray, IntArray]:
        """Assign numbers to the connections of the next capture.

        Returns: two columns of the length of its table: the common number of a connection, and 1
            where source and destination are exchanged in the common table, else 0.
        """
        flow = np.zeros(len(table), dtype=np.int64)
        turned = np.zeros(len(table), dtype=np.int64)
        taken: set[int] = set()
        syns = table.syns_seen()
        for at, row in enumerate(table.rows):
            ends = [
                (row[end].tobytes(), int(row[f"{end}_port"])) for end in ("source", "destination")
            ]
            isn = {ends[half]: int(row["base"][half]) for half in (0, 1) if syns[at, half]}
            kind = int(row["version"]), int(row["protocol"])
            namesakes = self._known.setdefault((*kind, *sorted(ends)), [])
            free = [each for each in namesakes if each.index not in taken]
            same = [each for each in free if each.agrees(isn)]
            vlans = row["vlans"].tobytes()
            unknown = [each for each in free if each.agrees(isn) is None]
            same += [each for each in unknown if each.vlans == vlans] + unknown
            if not same:
                same = [_Known(len(self._rows), ends[0], vlans, {})]
                namesakes += same
                self._rows.append(row)
            taken.add(same[0].index)
            same[0].isn |= isn
            flow[at] = same[0].index
            turned[at] = same[0].source != ends[0]
        return flow, turned

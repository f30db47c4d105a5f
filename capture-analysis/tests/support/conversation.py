"""A connection written down packet by packet, for tests of its analysis."""

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np
import pytest
from capture_analysis.columns import COLUMN_TYPES, FLAG_ACK, FLAG_SYN, Mark, Packets
from capture_analysis.flow_table import FLOW, FlowTable
from capture_analysis.tracking import Tracked, Tracker
from reference.tracker import PythonTracker

AnyTracker = Tracker | PythonTracker
NewTracker = Callable[[], AnyTracker]
# For tests of both trackers: the argument new_tracker makes a tracker.
each_tracker = pytest.mark.parametrize("new_tracker", [PythonTracker, Tracker])


class Conversation:
    """Packets of one connection; numbers are relative to the initial ones, times in microseconds.

    Attributes:
        packets: dicts of columns of `Packets`, in the order of the calls.
    """

    def __init__(self, isn: tuple[int, int] = (1000, 5000)) -> None:
        self.isn = isn
        self.packets: list[dict[str, int]] = []

    def send(
        self, half: int, at_us: int, seq: int, payload: int = 0, ack: int | None = None, **more: int
    ) -> None:
        """Add a packet; it has the ACK flag if `ack` is given, and its own IP identification."""
        flags = more.pop("flags", 0) | (0 if ack is None else FLAG_ACK)
        packet = {
            "half": half,
            "time_ns": at_us * 1000,
            "seq": (self.isn[half] + seq) % (1 << 32),
            "ack": 0 if ack is None else (self.isn[1 - half] + ack) % (1 << 32),
            "payload_bytes": payload,
            "window": 100,
            "ip_id": len(self.packets) % 60_000 + 1,
            "flags": flags,
        }
        self.packets.append(packet | more)

    def handshake(self) -> "Conversation":
        """Add SYN at 0, SYN and ACK at 10, and ACK at 30 us."""
        self.send(0, 0, 0, flags=FLAG_SYN)
        self.send(1, 10, 0, ack=1, flags=FLAG_SYN)
        self.send(0, 30, 1, ack=1)
        return self

    def sack(self, at_us: int, ack: int, left: int, right: int) -> None:
        """Add an ACK with a SACK block, from the half that sends no data."""
        edges = {"sack_left": self.isn[0] + left, "sack_right": self.isn[0] + right}
        self.send(1, at_us, 1, ack=ack, marks=int(Mark.SACK), **edges)

    def again(self, at_us: int, **more: int) -> None:
        """Add the last packet once more with some columns changed."""
        self.packets.append(self.packets[-1] | {"time_ns": at_us * 1000} | more)

    def tracked(self, tracker: AnyTracker) -> Tracked:
        """Return a tracker's result."""
        return tracker.track(columns(self.packets), flow_table(1))


def columns(packets: Sequence[dict[str, int]]) -> Packets:
    """Make packets from dicts; columns that are not given are 0."""
    return Packets(
        *(
            np.array([p.get(f.name, 0) for p in packets], np.int64).astype(COLUMN_TYPES[f.name])
            for f in fields(Packets)
        )
    )


def flow_table(flows: int) -> FlowTable:
    """Make a table of a number of unknown connections."""
    return FlowTable(np.zeros(flows, dtype=FLOW))


def packets(**columns: Sequence[int]) -> Packets:
    """Make packets from at least one column; other columns are zero."""
    length = len(next(iter(columns.values())))
    return Packets(
        *(np.array(columns.get(f.name, [0] * length), dtype=np.int64) for f in fields(Packets))
    )

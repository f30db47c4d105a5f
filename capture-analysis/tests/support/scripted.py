"""Captures written packet by packet, whose truth is known by construction.

A script has the packets of one connection as its tap sees them; end 0, the client, opens it. Both
ends keep their numbers, so that a line of a test has a time, an end and what is special.
"""

from typing import Any

import numpy as np
from capture_analysis.columns import FLAG_ACK, FLAG_SYN, Mark
from capture_analysis.flow_table import FLOW, FlowTable, Seen
from conversation import Conversation, columns
from measured_captures import ColumnCapture

MSS = 1460
PSH = 8


class Script(Conversation):
    """A connection whose ends keep the numbers of their next bytes.

    Args:
        round_trip_us: of the path.
        to_server_us: the part of it from the tap to the server and back.
        window: bytes that each end announces.
    """

    def __init__(self, round_trip_us: int, to_server_us: int, window: int = 65_000) -> None:
        super().__init__()
        self.next, self.heard, self.window = [1, 1], [1, 1], [window, window]
        self.send(0, 0, 0, flags=FLAG_SYN)
        self.send(1, to_server_us, 0, ack=1, flags=FLAG_SYN)
        self.send(0, round_trip_us, 1, ack=1, window=window)

    def data(self, end: int, at_us: int, payload: int, **more: Any) -> int:
        """Send new data with an ACK of all that this end has heard; return its first byte."""
        first = self.next[end]
        self.next[end] += payload
        self._say(end, at_us, first, payload, **more)
        return first

    def repeat(self, end: int, at_us: int, first: int, payload: int) -> None:
        """Send data again."""
        self._say(end, at_us, first, payload)

    def ack(self, end: int, at_us: int, **more: Any) -> None:
        """Send a pure ACK of all that this end has heard."""
        self._say(end, at_us, self.next[end], 0, **more)

    def hears(self, end: int) -> None:
        """Let a end receive everything that the other has sent."""
        self.heard[end] = self.next[1 - end]

    def _say(self, end: int, at_us: int, seq: int, payload: int, **more: Any) -> None:
        flags = more.pop("flags", PSH if payload else 0)
        what = {"window": self.window[end], "flags": flags | FLAG_ACK} | more
        self.send(end, at_us, seq, payload, ack=self.heard[end], **what)

    def captured(self) -> ColumnCapture:
        """Return the packets in time order, with their connection."""
        packets = columns(self.packets)
        packets.frame_bytes[:] = packets.payload_bytes + 54
        packets.marks[:] |= int(Mark.FIRST_TTL)
        packets.frame[:] = np.arange(1, len(packets) + 1)
        row = np.zeros(1, dtype=FLOW)
        row["base"], row["seen"], row["version"] = self.isn, 3 * (Seen.HALF | Seen.SYN), 4
        for end, host in (("source", 1), ("destination", 2)):
            row[end] = np.frombuffer(bytes([*bytes(10), 255, 255, 192, 0, 2, host]), "u1")
        row["source_port"], row["destination_port"], row["mss"] = 40000, 445, MSS
        row["first_ns"] = packets.time_ns[0]
        return ColumnCapture(
            packets.where(np.argsort(packets.time_ns, kind="stable")), FlowTable(row)
        )

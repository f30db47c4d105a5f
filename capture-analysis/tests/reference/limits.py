"""The causes for which a direction waits, packet by packet in Python (clib/limits.c in C)."""

from collections import deque

import numpy as np
from capture_analysis.columns import FLAG_FIN, FLAG_RST, FLAG_SYN, Mark, Packets
from capture_analysis.facts.directions import Block
from capture_analysis.facts.facts import NEAR, Facts
from capture_analysis.tracking import Kind, Tracked

CAUSES = (
    *("application", "recovery", "receive window", "congestion window", "ACK compression"),
    *("send buffer", "zero window", "pause", "Nagle"),
)
SECOND_NS = 1_000_000_000
_DATA = range(Kind.NEW_DATA, Kind.PROBE + 1)
_ACKS = range(Kind.ACK, Kind.OLD_ACK + 1)


def times_by_cause(block: Block, direction: int) -> list[int]:
    """Return a direction's time by cause, ns, in the order of CAUSES."""
    packets, tracked, sender = block.packets, block.tracked, _Sender(block.facts, direction)
    acknowledged = block.acknowledged_direction(np.arange(len(packets)))
    for row in range(len(packets)):
        if acknowledged[row] ^ 1 == direction and int(tracked.kind[row]) in _DATA:
            sender.arrive(int(packets.time_ns[row]))
            sender.data(packets, tracked, row)
        if acknowledged[row] == direction and _acknowledges(packets, tracked, row):
            sender.ack(packets, tracked, row)
    return sender.finished()


def _acknowledges(packets: Packets, tracked: Tracked, row: int) -> bool:
    flags = packets.flags[row] & (FLAG_SYN | FLAG_FIN | FLAG_RST)
    if tracked.ack_bytes[row] < 0 or tracked.kind[row] == Kind.COPY:
        return False
    return tracked.kind[row] != Kind.CONTROL or bool(flags == FLAG_FIN)


class _Sender:
    """Follow a sender: its data, its ACKs, and the time since its last data by what passed."""

    def __init__(self, facts: Facts, direction: int) -> None:
        self.answers = direction % 2 == 1
        self.near = facts.tap_at[direction] <= NEAR
        self.round_trip_ns = float(np.nan_to_num(facts.round_trip_ns[direction]))
        lan = facts.round_trip_ns[direction] < 1e6
        self.loop_ns = (1.0 if lan else float(facts.tap_at[direction])) * self.round_trip_ns
        self.shift = int(facts.window_shift[direction])
        self.segment = int(facts.segment_bytes[direction])
        self.tick_ns = int(facts.tick_whole_ns[direction])
        self.spent = dict.fromkeys(CAUSES, 0)
        self.since = dict.fromkeys(("wait", "held", "full", "full held", *CAUSES), 0)
        self.last_ns = self.data_ns = self.ack_ns = self.heard_ns = -1
        self.sent = self.acked = self.edge = self.repaired = self.peak = self.peak_at = -1
        self.unreleased, self.stamp, self.lossy, self.outstanding = -1, -1, False, -1
        longest = int(facts.longest_bytes[direction])
        self.full = longest if longest < 9216 else 536
        self.coming: deque[tuple[int, int, int]] = deque()

    def passing(self) -> str:
        if self.acked < self.repaired:
            return "recovery"
        if 0 <= self.edge == self.acked:
            return "zero window"
        if self.shift >= 0 and 0 <= self.edge < max(self.sent, self.acked) + self.segment:
            return "full"
        return "wait" if self.sent > self.acked else "application"

    def spend(self, time_ns: int, held_ns: int = 0) -> int:
        wait_ns = max(time_ns - self.last_ns, 0) if self.last_ns >= 0 else 0
        held_ns, what = min(held_ns, wait_ns), self.passing()
        if what in ("wait", "full"):
            self.since["held" if what == "wait" else "full held"] += held_ns
        else:
            held_ns = 0
        self.since[what] += wait_ns - held_ns
        self.last_ns = time_ns
        return wait_ns

    def ack(self, packets: Packets, tracked: Tracked, row: int) -> None:
        acked, time_ns = int(tracked.ack_bytes[row]), int(packets.time_ns[row])
        edge = acked + (int(packets.window[row]) << max(self.shift, 0))
        pure = tracked.kind[row] in _ACKS
        if tracked.kind[row] in _DATA and acked >= self.sent:
            self.heard_ns = time_ns
        told = self.coming[-1][1:] if self.coming else (self.acked, self.edge)
        if not pure and acked <= told[0] and edge == told[1]:
            return
        if not self.near:
            later_ns = int(1.1 * self.loop_ns + 1e6)
            self.coming.append((time_ns + later_ns, acked, edge))
            return
        held_ns = self.held(packets, tracked, row) if pure else 0
        if pure or self.last_ns >= 0:
            self.spend(time_ns, held_ns)
        self.hear(time_ns, acked, edge)

    def arrive(self, time_ns: int) -> None:
        while self.coming and self.coming[0][0] <= time_ns:
            at_ns, acked, edge = self.coming.popleft()
            self.spend(at_ns)
            self.hear(at_ns, acked, edge)

    def hear(self, time_ns: int, acked: int, edge: int) -> None:
        self.ack_ns = time_ns
        self.unreleased += self.unreleased >= 0 and acked > self.acked
        if acked >= self.acked:
            self.acked, self.edge = acked, edge

    def held(self, packets: Packets, tracked: Tracked, row: int) -> int:
        before, value = self.stamp, int(packets.ts_value[row])
        self.stamp = value if packets.marks[row] & Mark.TIMESTAMPS else -1
        gap_ns = int(tracked.gap_ns[row])
        if self.tick_ns <= 0 or min(before, self.stamp, gap_ns) < 0:
            return 0
        ticks = (value - before + (1 << 31)) % (1 << 32) - (1 << 31)
        return max(gap_ns - ticks * self.tick_ns - self.tick_ns, 0) if ticks >= 0 else 0

    def data(self, packets: Packets, tracked: Tracked, row: int) -> None:
        time_ns, start = int(packets.time_ns[row]), int(tracked.seq_bytes[row])
        again = tracked.kind[row] in (Kind.RETRANSMISSION, Kind.LATE_DATA)
        hole = not self.near and 0 <= self.sent < start
        self.spend(time_ns)
        if self.acked < 0:
            self.acked = max(start, 0)
        if tracked.kind[row] != Kind.PROBE:
            waited = self.near or self.unreleased >= 0 or self.heard(time_ns)
            silent = self.lossy and self.since["application"] >= 200_000_000
            idle = "application" if waited else "recovery" if silent else "congestion window"
            wait = "recovery" if again else self.reason(time_ns)
            self.decide(wait, idle, again, 0 if idle == "recovery" else self.paused(time_ns))
            self.data_ns = time_ns
            self.unreleased = 0 if packets.flags[row] & 8 else -1
        self.sent = max(self.sent, start + int(packets.payload_bytes[row]))
        self.lossy |= again
        if hole or again:
            self.repaired = self.sent
        flight = self.outstanding = max(self.sent - self.acked, 0)
        if flight > self.peak:
            self.peak, self.peak_at = flight, self.sent

    def heard(self, time_ns: int) -> bool:
        loop_ns = 0 if self.near and self.round_trip_ns < 1e6 else self.loop_ns
        soon = time_ns - self.heard_ns < 0.9 * loop_ns
        return 0 <= self.heard_ns >= self.data_ns and not soon

    def reason(self, time_ns: int) -> str:
        if self.heard(time_ns):
            return "application"
        if not self.near:
            return "congestion window"
        soon_ns = 1.1 * self.loop_ns + min(max(0.02 * self.round_trip_ns, 1e5), 1e6)
        since_data_ns, since_ack_ns = time_ns - self.data_ns, time_ns - self.ack_ns
        behind_ack = self.ack_ns >= self.data_ns
        grows = self.lossy or self.sent - self.peak_at <= 4 * self.peak
        paced = grows and since_data_ns <= max(0.1 * self.round_trip_ns, 1e6)
        if since_data_ns <= soon_ns or (behind_ack and since_ack_ns <= soon_ns) or paced:
            if (
                not self.lossy
                and behind_ack
                and self.outstanding < self.full >= 0 >= self.sent - self.acked
            ):
                return "Nagle"
            return "send buffer" if self.unreleased >= 3 else "congestion window"
        return "application"

    def paused(self, time_ns: int) -> int:
        idle_ns, thinks_ns = self.since["application"], max(time_ns - self.heard_ns, 0)
        if self.heard_ns < 0 or self.heard_ns < self.data_ns:
            return idle_ns
        return max(idle_ns - thinks_ns, 0) if self.answers else min(idle_ns, thinks_ns)

    def decide(self, wait: str, idle: str, again: bool, paused_ns: int) -> None:
        since, self.since = self.since, dict.fromkeys(self.since, 0)
        if paused_ns >= SECOND_NS:
            since["pause"] = paused_ns
            since["application"] -= paused_ns
        since["application"], idle_ns = 0, since["application"]
        since[idle] += idle_ns
        since[wait] += since["wait"]
        since["ACK compression" if wait == "congestion window" else wait] += since["held"]
        since["recovery" if again else "receive window"] += since["full"]
        since["ACK compression"] += since["full held"]
        for cause in CAUSES:
            self.spent[cause] += since[cause]

    def finished(self) -> list[int]:
        self.decide("application", "application", again=False, paused_ns=self.since["application"])
        return list(self.spent.values())

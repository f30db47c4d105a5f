"""Big synthetic captures of two-way TCP, made by numpy and written as a stream.

    python traffic_generator.py --packets 2000000 near.pcap [far.pcap]

Two hosts, near and far, are at the ends of one bottleneck, which is a FIFO in each direction. Every
second connection sends data from near to far, the others from far to near: the ACKs of each share a
queue with the data of the others and arrive compressed. A capture is that of the host's own
interface: packets that it sends before the queue, those that it receives after it.

Each connection sends a window of 32 full segments per cycle. The receiver delays ACKs (RFC 1122)
and sends one for each segment behind a hole, with a SACK block; at most one segment of a cycle is
lost, and sent again when the next cycle begins. Time proceeds in rounds, at whose end nothing is
outstanding: a round needs only the sequence and identification numbers of the one before.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from traffic_records import PLAIN_BYTES, file_header, records

IntArray = NDArray[np.int64]
Host = Literal["near", "far"]

START_NS = 946_684_800_000_000_000
WINDOW_SEGMENTS = 32
MSS_BYTES = 1448
CYCLE_NS = 12_000_000
PROPAGATION_NS = 1_000_000
SEGMENT_NS = 1_200  # spacing of a burst as the sender's interface sends it
LOAD = 0.4  # load of the bottleneck by data: a cycle is always longer than the round trip
ROUND_PACKETS = 400_000
FLAG_SYN, FLAG_PSH, FLAG_ACK = 2, 8, 16


@dataclass(frozen=True)
class Sent:
    """Packets as columns of shape (n,), int64; times in ns.

    Attributes:
        flow: number of the connection.
        from_near: 1 if near sends it, else 0.
        sent_ns, arrived_ns: before and after the bottleneck; -1 for a packet that it drops.
        seq, ack, payload_bytes, flags, ip_id: as in the headers, modulo nothing.
        ts_value, ts_echo: ticks of a millisecond.
        sack_left, sack_right: of the only SACK block; both 0 if there is none.
    """

    flow: IntArray
    from_near: IntArray
    sent_ns: IntArray
    arrived_ns: IntArray
    seq: IntArray
    ack: IntArray
    payload_bytes: IntArray
    flags: IntArray
    ip_id: IntArray
    ts_value: IntArray
    ts_echo: IntArray
    sack_left: IntArray
    sack_right: IntArray

    def where(self, rows: IntArray | NDArray[np.bool_]) -> "Sent":
        """Select some of the rows."""
        return Sent(**{name: column[rows] for name, column in vars(self).items()})

    @staticmethod
    def joined(*parts: "Sent") -> "Sent":
        """Join columns one after the other."""
        names = vars(parts[0])
        return Sent(**{name: np.concatenate([vars(p)[name] for p in parts]) for name in names})

    def seen_at(self, host: Host) -> tuple[IntArray, IntArray]:
        """Return the rows of a host's packets, in time order, and their times."""
        mine = self.from_near == (host == "near")
        time_ns = np.where(mine, self.sent_ns, self.arrived_ns)
        order = np.argsort(time_ns, kind="stable")
        order = order[np.searchsorted(time_ns[order], 0) :]
        return order, time_ns[order]


class Traffic:
    """The packets of a number of connections, round by round.

    Args:
        flows: number of connections, two or more.
        loss: the share of segments that the bottleneck drops, at most 0.02.
        round_packets: approximate number of packets in a round; memory is proportional to it.
        seed: of the pseudo-random numbers.
    """

    def __init__(
        self,
        flows: int = 24,
        loss: float = 0.001,
        round_packets: int = ROUND_PACKETS,
        seed: int = 1,
    ) -> None:
        self.flows, self.loss = flows, loss
        self.cycles = max(2, round_packets * 2 // (3 * flows * WINDOW_SEGMENTS))
        self.random = np.random.default_rng(seed)
        self.isn = self.random.integers(0, 1 << 32, (2, flows))
        self.ticks = self.random.integers(0, 1 << 31, (2, flows))  # of data sender and receiver
        self.ip_ids = self.random.integers(0, 1 << 16, (2, flows))
        self.service_ns = LOAD * CYCLE_NS / (WINDOW_SEGMENTS * (flows + 1) // 2)  # of a segment

    def rounds(self) -> Iterator[Sent]:
        """Yield the packets of each round, without end."""
        yield self._handshakes()
        segments = self.cycles * WINDOW_SEGMENTS
        for number in range(1 << 62):
            began_ns = START_NS + CYCLE_NS + number * (self.cycles + 4) * CYCLE_NS
            yield self._round(began_ns, number * segments)

    def _handshakes(self) -> Sent:
        """Return SYN, SYN and ACK, and ACK of every connection; the data sender opens it."""
        flow = np.tile(np.arange(self.flows), 3)
        step = np.repeat([0, 1, 2], self.flows)
        by_opener = step != 1
        sent_ns = START_NS + 10 * flow + 2 * PROPAGATION_NS * step
        zero = np.zeros_like(flow)
        isn = np.where(by_opener, self.isn[0][flow], self.isn[1][flow])
        peer = np.where(by_opener, self.isn[1][flow], self.isn[0][flow])
        ms = sent_ns // 1_000_000
        return Sent(
            flow=flow,
            from_near=((flow % 2 == 0) == by_opener).astype(np.int64),
            sent_ns=sent_ns,
            arrived_ns=sent_ns + PROPAGATION_NS,
            seq=isn + (step == 2),
            ack=np.where(step > 0, peer + 1, 0),
            payload_bytes=zero,
            flags=np.choose(step, [FLAG_SYN, FLAG_SYN | FLAG_ACK, FLAG_ACK]),
            ip_id=zero,
            ts_value=np.where(by_opener, self.ticks[0][flow], self.ticks[1][flow]) + ms,
            ts_echo=np.where(step > 0, np.where(by_opener, *self.ticks[::-1, flow]) + ms - 2, 0),
            sack_left=zero,
            sack_right=zero,
        )

    def _round(self, began_ns: int, first_segment: int) -> Sent:
        """Return the packets of all connections in a round.

        Arrays have the shape (flows, cycles, 1 + window): slot 0 is the retransmitted segment of
        the cycle before, if one was lost.
        """
        shape = (self.flows, self.cycles, 1 + WINDOW_SEGMENTS)
        slot = np.arange(shape[2]) - 1
        cycle = np.arange(self.cycles)[:, None]
        hole = self._holes(shape[:2])[:, :, None]  # lost slot; WINDOW_SEGMENTS if none
        before = np.roll(hole, 1, axis=1)  # the last cycle loses no segment
        again = (slot < 0) & (before < WINDOW_SEGMENTS)
        phase = self.random.integers(0, CYCLE_NS // 4, (self.flows, self.cycles, 1))
        sent_ns = began_ns + CYCLE_NS * cycle + phase + SEGMENT_NS * (slot + 1)
        segment = np.where(again, before - WINDOW_SEGMENTS, slot) + cycle * WINDOW_SEGMENTS
        is_sent = (slot >= 0) | again
        data = self._data(sent_ns, segment, is_sent, slot == hole, first_segment)

        behind = slot > hole
        causes = is_sent & (slot != hole) & (behind | (slot % 2 == 1))
        base = cycle * WINDOW_SEGMENTS + first_segment
        acked = base + np.where(behind, hole, slot + 1)
        block = (np.where(behind, base + hole + 1, 0), np.where(behind, base + slot + 1, 0))
        which = causes[is_sent]
        answers = self._acks(data, which, *(each[causes] for each in (acked, *block)))
        for half, part in enumerate((data, answers)):
            self.ip_ids[half] += np.bincount(part.flow, minlength=self.flows)
        return Sent.joined(data, answers)

    def _holes(self, shape: tuple[int, int]) -> IntArray:
        """Return the lost slot of each cycle of each connection; WINDOW_SEGMENTS if none."""
        slots = self.random.integers(0, WINDOW_SEGMENTS - 8, shape)
        lost = self.random.random(shape) < self.loss * WINDOW_SEGMENTS
        lost[:, -1] = False
        return np.where(lost, slots, WINDOW_SEGMENTS)

    def _data(
        self,
        sent_ns: IntArray,
        segment: IntArray,
        sent: NDArray[np.bool_],
        lost: NDArray[np.bool_],
        first_segment: int,
    ) -> Sent:
        """Return segments, in the order in which each connection sends them."""
        flow, cycle, slot = np.nonzero(sent)
        sent_ns, segment, lost = sent_ns[sent], segment[sent], lost[sent]
        from_near = flow % 2 == 0
        arrived_ns = np.empty_like(sent_ns)
        for direction in (from_near, ~from_near):
            arrived_ns[direction] = self._through_queue(
                sent_ns[direction], np.full(direction.sum(), self.service_ns)
            )
        ms = sent_ns // 1_000_000
        last = slot == WINDOW_SEGMENTS
        zero = np.zeros_like(flow)
        return Sent(
            flow=flow,
            from_near=from_near.astype(np.int64),
            sent_ns=sent_ns,
            arrived_ns=np.where(lost, -1, arrived_ns),
            seq=self.isn[0][flow] + 1 + (first_segment + segment) * MSS_BYTES,
            ack=self.isn[1][flow] + 1,
            payload_bytes=zero + MSS_BYTES,
            flags=np.where(last, FLAG_ACK | FLAG_PSH, FLAG_ACK),
            ip_id=self.ip_ids[0][flow] + _rank(flow),
            ts_value=self.ticks[0][flow] + ms,
            ts_echo=self.ticks[1][flow] + ms - np.where(cycle > 0, CYCLE_NS // 1_000_000, 2),
            sack_left=zero,
            sack_right=zero,
        )

    def _acks(
        self,
        data: Sent,
        causes: NDArray[np.bool_],
        acked: IntArray,
        left: IntArray,
        right: IntArray,
    ) -> Sent:
        """Return the receivers' answers, sent when the segments that cause them arrive.

        Args:
            data: the data of the round.
            causes: the segments that are answered at once.
            acked: the segments that each answer acknowledges.
            left: first segment of its SACK block; 0 without one.
            right: the segment behind the block; 0 without one.
        """
        cause = data.where(causes)
        flow, sent_ns = cause.flow, cause.arrived_ns
        arrived_ns = np.empty_like(sent_ns)
        ack_ns = self.service_ns * PLAIN_BYTES / (PLAIN_BYTES + MSS_BYTES)
        for near in (0, 1):
            mine = cause.from_near != near
            beside = data.sent_ns[data.from_near == near]
            times = np.concatenate((sent_ns[mine], beside))
            service = np.repeat((ack_ns, self.service_ns), (mine.sum(), len(beside)))
            arrived_ns[mine] = self._through_queue(times, service)[: mine.sum()]
        origin = self.isn[0][flow] + 1
        return Sent(
            flow=flow,
            from_near=1 - cause.from_near,
            sent_ns=sent_ns,
            arrived_ns=arrived_ns,
            seq=self.isn[1][flow] + 1,
            ack=origin + acked * MSS_BYTES,
            payload_bytes=np.zeros_like(flow),
            flags=np.full_like(flow, FLAG_ACK),
            ip_id=self.ip_ids[1][flow] + _rank(flow),
            ts_value=self.ticks[1][flow] + sent_ns // 1_000_000,
            ts_echo=cause.ts_value,
            sack_left=np.where(right > 0, origin + left * MSS_BYTES, 0),
            sack_right=np.where(right > 0, origin + right * MSS_BYTES, 0),
        )

    @staticmethod
    def _through_queue(sent_ns: IntArray, service_ns: NDArray[np.float64]) -> IntArray:
        """Return when packets have passed a FIFO and the link behind it (Lindley's recursion)."""
        order = np.argsort(sent_ns, kind="stable")
        work = np.cumsum(service_ns[order])
        start = sent_ns[order].min()
        idle = np.maximum.accumulate(sent_ns[order] - start - (work - service_ns[order]))
        arrived = np.empty_like(sent_ns)
        arrived[order] = start + PROPAGATION_NS + (work + idle).astype(np.int64)
        return arrived


def _rank(flow: IntArray) -> IntArray:
    """Count, for each row, the earlier rows of the same flow; flows ascend."""
    return np.arange(len(flow)) - np.searchsorted(flow, flow)


def _columns(sent: Sent) -> dict[str, IntArray]:
    """Add addresses and ports: connection n is between ports 1024 + n and 5001 + n // 2^15."""
    data_port = 1024 + sent.flow % (1 << 15)
    service_port = 5001 + sent.flow // (1 << 15)
    opens = sent.from_near == (sent.flow % 2 == 0)
    return vars(sent) | {
        "source": 2 - sent.from_near,
        "destination": 1 + sent.from_near,
        "source_port": np.where(opens, data_port, service_port),
        "destination_port": np.where(opens, service_port, data_port),
    }


def write(traffic: Traffic, packets: int, paths: dict[Host, Path]) -> None:
    """Write the captures of one or both hosts.

    Args:
        traffic: unused traffic.
        packets: number of packets in each file.
        paths: a file for each host.
    """
    left = dict.fromkeys(paths, packets)
    files = {host: path.open("wb") for host, path in paths.items()}
    try:
        for file in files.values():
            file.write(file_header())
        for sent in traffic.rounds():
            for host, file in files.items():
                rows, time_ns = sent.seen_at(host)
                rows, time_ns = rows[: left[host]], time_ns[: left[host]]
                file.write(records(_columns(sent.where(rows)), time_ns).data)
                left[host] -= len(rows)
            if not any(left.values()):
                return
    finally:
        for file in files.values():
            file.close()


def main() -> None:
    """Write the captures that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("near", type=Path)
    parser.add_argument("far", type=Path, nargs="?")
    parser.add_argument("--packets", type=int, default=2_000_000)
    parser.add_argument("--flows", type=int, default=24)
    parser.add_argument("--loss", type=float, default=0.001)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    paths: dict[Host, Path] = {"near": asked.near}
    if asked.far:
        paths["far"] = asked.far
    traffic = Traffic(asked.flows, asked.loss, seed=asked.seed)
    write(traffic, asked.packets, paths)


if __name__ == "__main__":
    main()

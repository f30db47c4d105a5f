"""Goodput of connections in each second, and each connection's share of a common bottleneck."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from capture_analysis.columns import BoolArray, IntArray, Packets
from capture_analysis.errors import AnalysisError
from numpy.typing import NDArray

from twoway.contract.network import Connection
from twoway.measure.run_folder import Run
from twoway.measure.throughput import rate_bit

SECOND_NS = 1_000_000_000
# Limit of the seconds of all connections together: 17 bytes each.
_MOST_SECONDS = 30_000_000
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Seconds:
    """Goodput of connections in each whole second of traffic.

    Attributes:
        connections: n of them, in the run's order.
        begin_ns: shape (k,), start of each second, on the plan's clock.
        goodput_bit: shape (n, k), new payload at the receiver, bit/s.
        sending: shape (n, k), True if the connection has data to send in all of the second.
    """

    connections: tuple[Connection, ...]
    begin_ns: IntArray
    goodput_bit: FloatArray
    sending: BoolArray

    def row(self, connection: Connection) -> int:
        """Find a connection's row."""
        return self._rows[connection.name]

    def rivals(self, connection: Connection) -> BoolArray:
        """Mark the connections with the same slowest queue, with itself; shape (n,)."""
        same: BoolArray = self._queues == connection.direction
        return same

    def share(self, connection: Connection) -> FloatArray:
        """Divide a connection's goodput by the sum over its rivals; shape (k,).

        NaN in seconds in which it does not send, or without goodput.
        """
        row = self.row(connection)
        total = self.goodput_bit[self.rivals(connection)].sum(axis=0)
        share = np.full(len(total), np.nan)
        known = self.sending[row] & (total > 0)
        share[known] = self.goodput_bit[row, known] / total[known]
        return share

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {each.name: row for row, each in enumerate(self.connections)}

    @cached_property
    def _queues(self) -> NDArray[np.str_]:
        return np.array([each.direction for each in self.connections])


def by_second(run: Run, arrived: Iterable[tuple[Connection, Packets, IntArray]]) -> Seconds:
    """Cut traffic into whole seconds from its start; a shorter rest is left out.

    Args:
        run: the run.
        arrived: each connection, its segments at its receiver, and their `new_payload`.
    """
    if len(run.connections) * (run.stop_ns - run.start_ns) > _MOST_SECONDS * SECOND_NS:
        raise AnalysisError(f"{run.folder}: more than {_MOST_SECONDS} seconds of all connections")
    edges_ns = np.arange(run.start_ns, run.stop_ns + 1, SECOND_NS)
    found = [
        (each, rate_bit(data, brought, edges_ns), _end_ns(run, each, data))
        for each, data, brought in arrived
    ]
    shape = len(found), len(edges_ns) - 1
    began_ns = np.array([each.start_ns for each, _, _ in found]).reshape(-1, 1)
    ended_ns = np.array([end_ns for _, _, end_ns in found]).reshape(-1, 1)
    return Seconds(
        tuple(each for each, _, _ in found),
        edges_ns[:-1],
        np.array([goodput for _, goodput, _ in found]).reshape(shape),
        np.asarray((began_ns <= edges_ns[:-1]) & (ended_ns >= edges_ns[1:])).reshape(shape),
    )


def _end_ns(run: Run, connection: Connection, data: Packets) -> int:
    """Return when a connection has no more to send: a transfer ends with its last data."""
    if connection.transfer_bytes is not None:
        return int(data.time_ns.max(initial=0))
    return connection.stop_ns or run.stop_ns

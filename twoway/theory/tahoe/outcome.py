"""The metrics of a modelled run, by the names that runs have.

This code is written from the metrics' definitions (`twoway metrics`), independently of the code
that measures runs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from twoway.theory.tahoe.network import Connection, Direction, Network, Packet

FloatArray = NDArray[np.float64]
# Times at which a quantity changed, ns, and its values from then on.
Steps = tuple[NDArray[np.int64], NDArray[np.int64]]
PARTS = 10
COMPRESSED = 0.75


@dataclass(frozen=True)
class Outcome:
    """A network that has run, with the names of its queues and connections."""

    network: Network
    queues: tuple[str, str]
    connections: tuple[str, ...]

    def metrics(self) -> dict[str, float]:
        """Compute the metrics that are defined."""
        found = {**self._lines(), **self._epochs(), **self._phase()}
        for number, name in enumerate(self.connections):
            found |= {f"{key}.{name}": value for key, value in self._connection(number).items()}
        return {name: value for name, value in found.items() if np.isfinite(value)}

    @cached_property
    def _lengths(self) -> tuple[Steps, Steps]:
        """Both queues' lengths over time."""
        first, second = (_steps(direction.lengths) for direction in self.network.directions)
        return first, second

    @cached_property
    def _flights(self) -> list[Steps]:
        """All windows over time."""
        return [_steps(connection.flight) for connection in self.network.connections]

    @property
    def _gap(self) -> int:
        """The longest round trip, which separates epochs, ns."""
        directions = self.network.directions
        return sum(
            direction.link.delay_ns + direction.link.limit * direction.link.data_ns
            for direction in directions
        )

    def _lines(self) -> dict[str, float]:
        start, stop = self.network.watch_ns
        found = {}
        lines = zip(self.queues, self.network.directions, self._lengths, strict=True)
        for name, direction, lengths in lines:
            found[f"utilisation.{name}"] = direction.busy / (stop - start)
            time, length = _cut_to_window(lengths, start, stop)
            found[f"queue_peak.{name}"] = _peak(time, length)
            found[f"queue_mean.{name}"] = _mean(time, length)
            found[f"drops_ack.{name}"] = sum(packet.kind == "ack" for _, packet in direction.drops)
        return found

    def _drops(self, directions: Iterable[Direction]) -> list[tuple[int, Packet]]:
        """List drops in time order."""
        return sorted(
            (d for direction in directions for d in direction.drops), key=lambda drop: drop[0]
        )

    def _epochs(self) -> dict[str, float]:
        directions, watch_ns = self.network.directions, self.network.watch_ns
        gap, drops = self._gap, self._drops(directions)
        epochs = clusters([drop for drop in drops if drop[1].kind == "data"], gap, watch_ns)
        victims = [{packet.connection for _, packet in epoch} for epoch in epochs]
        single = [len(each) == 1 for each in victims]
        found = {
            **_describe(epochs, ("drops_per_epoch", "epoch_period")),
            "single_victim_epochs": _share(single),
            "alternating_victims": _share(
                len(a) == len(b) == 1 and a != b for a, b in pairwise(victims)
            ),
        }
        steady = [packet for time, packet in drops if time >= watch_ns[0]]
        found["dropped_data_share"] = _share(packet.kind == "data" for packet in steady)
        for name, direction in zip(self.queues, directions, strict=True):
            for half, key in ((1, "epoch_drops"), (2, "epoch_drops_half_gap")):
                of_queue = clusters(self._drops([direction]), gap // half, watch_ns)
                found |= _describe(of_queue, (f"{key}.{name}", f"queue_epoch_period.{name}"))
        for number, name in enumerate(self.connections):
            lost = sum(p.kind == "data" and p.connection == number for p in steady)
            found[f"epoch_losses.{name}"] = lost / len(epochs) if epochs else np.nan
        return found

    def _phase(self) -> dict[str, float]:
        start, stop = self.network.watch_ns
        lengths = self._lengths
        edges = np.linspace(start, stop, PARTS + 1).astype(np.int64)
        parts = [correlation(*lengths, int(a), int(b)) for a, b in pairwise(edges)]
        time, first, second = _common_edges(*lengths, start, stop)
        windows = zip((each.node for each in self.network.connections), self._flights, strict=True)
        alike = [
            (here == there, correlation(one, two, start, stop))
            for (here, one), (there, two) in combinations(windows, 2)
        ]
        found = {
            "queue_peak_ratio": self._peak_ratio(),
            "synchronisation": float(np.mean(parts)),
            "queue_correlation": correlation(*lengths, start, stop),
            "both_busy": _mean(time, np.minimum(first, 1) * np.minimum(second, 1)),
            "neither_busy": _mean(time, (first == 0) & (second == 0)),
        }
        for key, same in (("same_way", True), ("opposite", False)):
            of = [value for one_way, value in alike if one_way == same]
            found[f"window_correlation_{key}"] = float(np.mean(of)) if of else np.nan
        return found

    def _peak_ratio(self) -> float:
        watch_ns = self.network.watch_ns
        low, high = sorted(_peak(*_cut_to_window(lengths, *watch_ns)) for lengths in self._lengths)
        return low / high if high else float("nan")

    def _connection(self, number: int) -> dict[str, float]:
        start, stop = self.network.watch_ns
        connection = self.network.connections[number]
        _, flight = _cut_to_window(self._flights[number], start, stop)
        direction = self.network.directions[connection.node]
        left = [
            (time, packet.kind == "data" and packet.connection == number)
            for time, packet in direction.left
            if time >= start
        ]
        mine = [own for _, own in left]
        packets = sum(mine[1:])
        clusters_left = packets - sum(a and b for a, b in pairwise(mine))
        changed, windows = self._flights[number]
        at = np.searchsorted(changed, [time for time, own in left[1:] if own], side="right") - 1
        found = {
            "window_peak": float(flight.max()),
            "clustering": 1 - clusters_left / packets,
            "cluster_mean": packets / clusters_left if clusters_left else np.nan,
            "clusters_per_window": clusters_left / (1 / np.maximum(windows[at], 1)).sum(),
        }
        return found | {"window_growth": self._growth(number)} | self._acks(connection, sum(mine))

    def _growth(self, number: int) -> float:
        """Fit the exponent with which a window grows from its lowest value to the next loss."""
        drops = [drop for drop in self._drops(self.network.directions) if drop[1].kind == "data"]
        mine = [drop for drop in drops if drop[1].connection == number]
        losses = [epoch[0][0] for epoch in clusters(mine, self._gap, self.network.watch_ns)]
        tenths, grown = np.arange(1, 11) / 10, []
        for start, stop in pairwise(losses):
            edges, values = _cut_to_window(self._flights[number], start, stop)
            begun = edges[np.flatnonzero(values == values.min())[-1]]
            rows = np.searchsorted(edges, begun + tenths * (stop - 1 - begun), side="right") - 1
            grown.append(np.log(np.maximum(values[rows], 1)))
        if not grown:
            return float("nan")
        return float(np.polyfit(np.log(tenths), np.mean(grown, axis=0), 1)[0])

    def _acks(self, connection: Connection, segments: int) -> dict[str, float]:
        """Describe ACKs on arrival; nothing if some were dropped and the rest cannot be matched."""
        if any(
            packet.kind == "ack"
            for direction in self.network.directions
            for _, packet in direction.drops
        ):
            return {}
        start, _ = self.network.watch_ns
        arrived = np.array(connection.acks_arrived)
        sent = np.array(connection.acks_sent)[: len(arrived)]
        steady = arrived >= start
        gaps, were = np.diff(arrived[steady]), np.diff(sent[steady])
        least = 2 * self.network.directions[1 - connection.node].link.ack_ns
        apart = np.flatnonzero(gaps > least)
        bunches = np.diff([-1, *apart, len(gaps)])
        return {
            "acks_compressed": float((gaps < COMPRESSED * were).mean()),
            "ack_bunch_max": float(bunches.max()),
            "ack_to_data": int(steady.sum()) / segments,
        }


def clusters(
    drops: Sequence[tuple[int, Packet]], gap_ns: int, watch_ns: tuple[int, int]
) -> list[list[tuple[int, Packet]]]:
    """Cut drops into epochs separated by a gap; keep the epochs that start in the window.

    Args:
        drops: times and packets, in time order.
        gap_ns: the least time between two epochs.
        watch_ns: start and end of the window in which an epoch must start.
    """
    epochs: list[list[tuple[int, Packet]]] = []
    last = None
    for drop in drops:
        if last is None or drop[0] - last > gap_ns:
            epochs.append([])
        epochs[-1].append(drop)
        last = drop[0]
    return [epoch for epoch in epochs if watch_ns[0] <= epoch[0][0] < watch_ns[1]]


def correlation(one: Steps, two: Steps, start: int, stop: int) -> float:
    """Correlate two quantities over time; NaN if one is constant."""
    time, first, second = _common_edges(one, two, start, stop)
    a, b = first - _mean(time, first), second - _mean(time, second)
    spread = np.sqrt(_mean(time, a * a) * _mean(time, b * b))
    return float(_mean(time, a * b) / spread) if spread else float("nan")


def _describe(epochs: list[list[tuple[int, Packet]]], names: tuple[str, str]) -> dict[str, float]:
    """Compute mean drops and period of epochs, under these names."""
    if not epochs:
        return {}
    found = {names[0]: sum(map(len, epochs)) / len(epochs)}
    if len(epochs) > 1:
        between = epochs[-1][0][0] - epochs[0][0][0]
        found[names[1]] = between / (len(epochs) - 1) / 1e9
    return found


def _share(of: Iterable[bool]) -> float:
    values = list(of)
    return sum(values) / len(values) if values else float("nan")


def _peak(edges: FloatArray, values: FloatArray) -> float:
    """Find the largest value that lasts: of one instant the departures are first."""
    return float(values[np.diff(edges) > 0].max())


def _mean(edges: FloatArray, values: FloatArray) -> float:
    """Average a quantity over time; `edges` has one more value, the window's end."""
    return float((values * np.diff(edges)).sum() / (edges[-1] - edges[0]))


def _steps(changes: Sequence[tuple[int, int]]) -> Steps:
    time, value = np.array(changes, dtype=np.int64).reshape(-1, 2).T
    return time, value


def _cut_to_window(steps: Steps, start: int, stop: int) -> tuple[FloatArray, FloatArray]:
    """Cut a quantity to a window: n + 1 edges, n values."""
    time, value = steps
    first = max(int(np.searchsorted(time, start, side="right")) - 1, 0)
    last = int(np.searchsorted(time, stop))
    edges = np.concatenate(([start], time[first + 1 : last], [stop])).astype(np.float64)
    return edges, value[first:last].astype(np.float64)


def _common_edges(
    one: Steps, two: Steps, start: int, stop: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bring two quantities to common edges."""
    (edges_one, first), (edges_two, second) = (
        _cut_to_window(each, start, stop) for each in (one, two)
    )
    edges = np.union1d(edges_one, edges_two)
    here = np.searchsorted(edges_one, edges[:-1], side="right") - 1
    there = np.searchsorted(edges_two, edges[:-1], side="right") - 1
    return edges, first[here], second[there]

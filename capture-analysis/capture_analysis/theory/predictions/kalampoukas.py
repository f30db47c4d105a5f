"""Kalampoukas et al.'s cycle of an experiment's fixed windows."""

from collections.abc import Sequence

from capture_analysis.theory.setup import Connection, Setup
from capture_analysis.theory.two_way import Side, alone_s, cycle_s, queue_peaks


def predict(setup: Setup) -> dict[str, float]:
    """Efficiency, throughput and goodput by connection; by direction its use, cycle and queue.

    Connections with the same queues act as one with the sum of their windows (section 5.4).
    queue_peak_data where ACKs are compressed; busy_period_cycle where there are two sides.

    Raises: ValueError if a connection has no fixed window, or passes several queues.
    """
    predicted: dict[str, float] = {}
    for direction, mine in _sides(setup).items():
        back = mine[0].ack_direction
        theirs = _sides(setup).get(back, [])
        one, other = _side(setup, direction, mine), _side(setup, back, theirs)
        cycle = cycle_s(one, other) if theirs else alone_s(one, other)
        predicted |= {
            f"{family}.{connection.name}": value
            for connection in mine
            for family, value in _shares(setup, connection, cycle).items()
        }
        busy_s = one.window_s + other.window * one.ack_s
        predicted[f"utilisation.{direction}"] = busy_s / cycle
        if theirs:
            predicted[f"busy_period_cycle.{direction}"] = cycle
            peaks = queue_peaks(one, other)
            if peaks:
                predicted[f"queue_peak_data.{direction}"] = peaks[0]
        else:
            predicted[f"utilisation.{back}"] = one.window * other.ack_s / cycle
    return predicted


def _sides(setup: Setup) -> dict[str, list[Connection]]:
    """Connections by the queue that their data passes."""
    sides: dict[str, list[Connection]] = {}
    for connection in setup.connections:
        if connection.window_packets is None:
            raise ValueError(f"is about fixed windows, and {connection.name} has none")
        if len(connection.directions) + len(connection.ack_directions) > 2:
            raise ValueError(f"is about one queue each way, and {connection.name} passes more")
        sides.setdefault(connection.direction, []).append(connection)
    return sides


def _side(setup: Setup, direction: str, connections: Sequence[Connection]) -> Side:
    link = setup.links[direction]
    return Side(
        window=sum(c.window_packets or 0 for c in connections),
        data_s=link.data_s,
        ack_s=link.ack_s,
        delay_s=link.delay_s,
        start_s=min((c.start_s for c in connections), default=0),
    )


def _shares(setup: Setup, connection: Connection, cycle: float) -> dict[str, float]:
    link = setup.links[connection.direction]
    efficiency = (connection.window_packets or 0) * link.data_s / cycle
    throughput = efficiency * link.rate_bit / 1e6
    return {
        "efficiency": efficiency,
        "throughput": throughput,
        "goodput": throughput * link.payload_share,
    }

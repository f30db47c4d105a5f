"""Fixed windows in both directions, with ACK time.

After Theorem 2 of Kalampoukas et al. (1998).

Queues depend on the phase of the starts and on ACK time, which the paper's lemmas leave out: the
queues' peaks come from the packet-level model.
"""

from fractions import Fraction

from twoway.contract.network import Connection
from twoway.theory.kalampoukas import cycle, one_way_cycle
from twoway.theory.network import Setup
from twoway.theory.packet_model import Side, simulate

# Cycles before the watched window, in which the model settles, and cycles watched: busy periods
# repeat after one or two.
SETTLED_CYCLES, WATCHED_CYCLES = 20, 8


def predict(setup: Setup) -> dict[str, float]:
    """Predict each connection's throughput, and each direction's use.

    Connections of one direction that open together count as one (section 5.4). If only one
    direction has connections, ACKs never wait for data, and there are no busy periods.

    Raises: ValueError with a sentence if the theory does not cover the setup.
    """
    if not setup.acks_every_segment:
        raise ValueError("it needs an ACK for every segment")
    values: dict[str, float] = {}
    for direction in sorted({c.direction for c in setup.connections}):
        values |= _of_direction(setup, direction)
    return values


def _of_direction(setup: Setup, direction: str) -> dict[str, float]:
    own = [c for c in setup.connections if c.direction == direction]
    back = own[0].ack_direction
    opposite = [c for c in setup.connections if c.direction == back]
    _check(own, back)
    _check(opposite, direction)
    one, two = _side(setup, direction, own), _side(setup, back, opposite)
    period = cycle(one, two) if opposite else one_way_cycle(one, two)
    begin = max(one.start, two.start) + SETTLED_CYCLES * period
    queue, _ = simulate((one, two), (begin, begin + WATCHED_CYCLES * period))
    values = {
        f"queue_peak.{direction}": float(queue.queue_peak),
        f"queue_peak_data.{direction}": float(queue.data_peak),
        f"utilisation.{direction}": float((one.burst + two.window * one.ack) / period),
    }
    if opposite:
        values[f"busy_period_cycle.{direction}"] = float(period)
    else:
        values[f"utilisation.{back}"] = float(one.window * two.ack / period)
    for connection in own:
        values |= _of_connection(setup, connection, one, period)
    return values


def _of_connection(
    setup: Setup, connection: Connection, side: Side, period: Fraction
) -> dict[str, float]:
    link = setup.links[connection.direction]
    efficiency = float((connection.window_packets or 0) * side.data / period)
    throughput = efficiency * link.rate_bit / 1e6
    return {
        f"efficiency.{connection.name}": efficiency,
        f"throughput.{connection.name}": throughput,
        f"goodput.{connection.name}": throughput * link.payload_share,
    }


def _check(connections: list[Connection], back: str) -> None:
    for each in connections:
        if each.window_packets is None:
            raise ValueError(f"{each.name} has no fixed window")
        if len(each.directions) > 1 or len(each.ack_directions) > 1:
            raise ValueError(f"{each.name} passes more than one bottleneck")
        if each.ack_direction != back:
            raise ValueError(f"the ACKs of {each.name} do not pass {back}")
    if len({each.start_s for each in connections}) > 1:
        raise ValueError("connections of one direction must open together")


def _side(setup: Setup, direction: str, connections: list[Connection]) -> Side:
    link = setup.links[direction]
    window = sum(c.window_packets or 0 for c in connections)
    if window > link.buffer_packets:
        raise ValueError(f"a buffer of {link.buffer_packets} packets loses some of {window}")
    start_s = min((c.start_s for c in connections), default=0)
    times = (link.data_s, link.ack_s, link.delay_ns / 1e9, start_s)
    return Side(window, *(Fraction(str(t)) for t in times))

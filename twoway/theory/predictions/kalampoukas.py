"""Fixed windows in both directions, with ACK time.

After Theorem 2 of Kalampoukas et al. (1998).

Queues, bunches of ACKs and everything that depends on the phase of the starts and on ACK time,
which the paper's lemmas leave out, come from the packet-level model. So does everything for ACKs in
a queue of their own, the paper's remedy, for which it has no formula.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from twoway.contract.network import Connection
from twoway.links.ack_queue import AckQueue
from twoway.theory.kalampoukas import (
    compresses,
    cycle,
    one_way_cycle,
    printed_efficiency,
    printed_one_way_efficiency,
    printed_queue_bound,
    printed_queues,
)
from twoway.theory.network import Bottleneck, Setup
from twoway.theory.packet_model import Outcome, Sender, simulate

# Cycles before the watched window, in which the model settles, and cycles watched: busy periods
# repeat after one or two.
SETTLED_CYCLES, WATCHED_CYCLES = 20, 8
# With ACKs in a queue of their own no closed form gives the model's cycle: the watched window is so
# long that a partial cycle at its end does not matter.
WATCHED_WITH_ACK_QUEUES = 100
# Of two connections with one start the second one in the file begins so much later, s: five
# readings of a clock that each reading moves by 256 ns.
_LATER = Fraction(5 * 256, 10**9)
# A float may be just below the whole number of ns that it stands for.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class _Pair:
    """A direction with its connections, and the opposite one.

    Attributes:
        direction, back: their names.
        one, two: the nodes that send into them.
        own: connections with data in `direction`.
        opposite: number of connections with data in `back`.
    """

    direction: str
    back: str
    one: Sender
    two: Sender
    own: list[Connection]
    opposite: int


def predict(setup: Setup) -> dict[str, float]:
    """Predict each connection's throughput, and each direction's use.

    Connections of one direction that open together count as one (section 5.4). If only one
    direction has connections, ACKs never wait for data, and there are no busy periods.

    Raises: ValueError with a sentence if the theory does not cover the setup.
    """
    values: dict[str, float] = {}
    for pair in _pairs(setup):
        has_ack_queue = pair.one.ack_first or pair.two.ack_first
        if pair.opposite and has_ack_queue:
            values |= _with_ack_queues(setup, pair)
        else:
            values |= _of_cycle(setup, pair)
    return values | _sum(values)


def printed_values(setup: Setup) -> dict[str, float]:
    """Compute the paper's formulas, in which ACKs take no time.

    Theorem 2 and Lemmas 3 and 5 with data in both directions; min(W/2L, 1) with data in one, and
    below the compression condition, as in figures 3.3 and 3.4. Lemma 2 for equal windows and rates:
    otherwise the first busy periods do not determine the phase of the later ones.
    """
    values: dict[str, float] = {}
    for pair in _pairs(setup):
        one, two = pair.one, pair.two
        if pair.opposite and (one.ack_first or two.ack_first):
            continue  # the paper has no formula for its remedies
        compressed = pair.opposite > 0 and compresses(one, two)
        if compressed:
            efficiency = printed_efficiency(one, two)
            values[f"utilisation_data.{pair.direction}"] = float(efficiency)
            values[f"busy_period_cycle.{pair.direction}"] = float(one.burst / efficiency)
            values[f"queue_peak_data.{pair.direction}"] = float(printed_queue_bound(one, two))
            if (one.window, one.data) == (two.window, two.data):
                high, low = printed_queues(one, two)
                values[f"busy_peak_high.{pair.direction}"] = float(high)
                values[f"busy_peak_low.{pair.direction}"] = float(low)
        else:
            delay_segments = (one.delay + two.delay) / one.data / 2
            efficiency = printed_one_way_efficiency(one.window, delay_segments)
        for connection in pair.own:
            values |= _of_connection(setup, connection, one, one.burst / efficiency)
    return values | _sum(values)


def _sum(values: dict[str, float]) -> dict[str, float]:
    """Add up the throughputs of all connections."""
    return {
        "throughput_sum": sum(v for name, v in values.items() if name.startswith("throughput."))
    }


def _of_cycle(setup: Setup, pair: _Pair) -> dict[str, float]:
    """Predict from the closed form's cycle, and queues from the model."""
    one, two, direction = pair.one, pair.two, pair.direction
    period = cycle(one, two) if pair.opposite else one_way_cycle(one, two)
    mine, other = _watched(pair, period, WATCHED_CYCLES)
    values = {
        f"queue_peak.{direction}": float(mine.queue_peak),
        f"queue_peak_data.{direction}": float(mine.data_peak),
        f"utilisation.{direction}": float((one.burst + two.window * one.ack) / period),
        f"utilisation_data.{direction}": float(one.burst / period),
    }
    if pair.opposite:
        high, low = _alternating(mine.cluster_peaks)
        values[f"busy_period_cycle.{direction}"] = float(period)
        values[f"busy_peak_high.{direction}"] = high
        values[f"busy_peak_low.{direction}"] = low
        values[f"queue_ack_bunch_max.{direction}"] = float(mine.ack_bunch)
    else:
        values[f"utilisation.{pair.back}"] = float(one.window * two.ack / period)
    for connection in pair.own:
        values |= _of_connection(setup, connection, one, period)
    if len(pair.own) == 1 and pair.opposite:
        name = pair.own[0].name
        values[f"ack_bunch_max.{name}"] = float(other.ack_bunch)
        if other.ack_bunch > 1:
            values[f"compression_factor.{name}"] = _factor(setup, pair)
    return values


def _with_ack_queues(setup: Setup, pair: _Pair) -> dict[str, float]:
    """Predict from the model alone: an ACK waits for one segment at most."""
    one = pair.one
    period = max(one_way_cycle(one, pair.two), one_way_cycle(pair.two, one))
    mine, _ = _watched(pair, period, WATCHED_WITH_ACK_QUEUES)
    watched = WATCHED_WITH_ACK_QUEUES * period
    values = {f"utilisation.{pair.direction}": float(mine.busy / watched)}
    for connection in pair.own:
        window_s = watched * one.window / mine.data_sent
        values |= _of_connection(setup, connection, one, window_s)
    return values


def _watched(pair: _Pair, period: Fraction, cycles: int) -> tuple[Outcome, Outcome]:
    begin = max(pair.one.start, pair.two.start) + SETTLED_CYCLES * period
    return simulate((pair.one, pair.two), (begin, begin + cycles * period))


def _alternating(peaks: tuple[int, ...]) -> tuple[float, float]:
    """Return the peaks of every second busy period, the higher first."""
    first, second = peaks[0], peaks[1]
    return float(max(first, second)), float(min(first, second))


def _factor(setup: Setup, pair: _Pair) -> float:
    """Divide the transmission time of a segment by that of an ACK.

    Both are cut to whole ns, as by netem.
    """
    data, ack = setup.links[pair.direction].data_s, setup.links[pair.back].ack_s
    return math.floor(data * 1e9 + _ROUNDING) / math.floor(ack * 1e9 + _ROUNDING)


def _of_connection(
    setup: Setup, connection: Connection, sender: Sender, period: Fraction
) -> dict[str, float]:
    link = setup.links[connection.direction]
    efficiency = float((connection.window_packets or 0) * sender.data / period)
    throughput = efficiency * link.rate_bit / 1e6
    return {
        f"efficiency.{connection.name}": efficiency,
        f"throughput.{connection.name}": throughput,
        f"goodput.{connection.name}": throughput * link.payload_share,
    }


def _pairs(setup: Setup) -> list[_Pair]:
    """Collect the directions that have data, each with its opposite.

    Raises: ValueError with a sentence if the theory does not cover the setup.
    """
    if not setup.acks_every_segment:
        raise ValueError("it needs an ACK for every segment")
    pairs = []
    for direction in sorted({c.direction for c in setup.connections}):
        own = [c for c in setup.connections if c.direction == direction]
        back = own[0].ack_direction
        opposite = [c for c in setup.connections if c.direction == back]
        _check(own, back)
        _check(opposite, direction)
        after = not opposite or setup.connections.index(own[0]) < setup.connections.index(
            opposite[0]
        )
        one = _sender(setup.links[direction], direction, own, _LATER * (not after))
        two = _sender(setup.links[back], back, opposite, _LATER * after)
        pairs.append(_Pair(direction, back, one, two, own, len(opposite)))
    return pairs


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


def _sender(
    link: Bottleneck, direction: str, connections: list[Connection], later: Fraction
) -> Sender:
    window = sum(c.window_packets or 0 for c in connections)
    if window > link.buffer_packets:
        raise ValueError(
            f"a buffer of {link.buffer_packets} packets at {direction} loses some of {window}"
        )
    start_s = min((c.start_s for c in connections), default=0)
    return Sender(
        window=window,
        data=Fraction(str(link.data_s)),
        ack=Fraction(str(link.ack_s)),
        delay=Fraction(link.delay_ns, 10**9),
        start=Fraction(str(start_s)) + later,
        ack_first=link.elements.contains(AckQueue),
    )

"""Fixed windows both ways: Theorem 2 of Kalampoukas et al., with ACK time."""

from fractions import Fraction

from capture_analysis.theory.kalampoukas import Side, cycle, efficiency, utilisation
from capture_analysis.theory.setup import Connection, Setup


def predict(setup: Setup) -> dict[str, float]:
    """Efficiencies, utilisations and cycles.

    Connections of one direction that open together count as one (section 5.4).

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
    period = cycle(one, two)
    share = efficiency(one, two)
    return {
        f"busy_period_cycle.{direction}": float(period),
        f"utilisation.{direction}": float(utilisation(one, two)),
    } | {
        f"efficiency.{c.name}": float(share * c.window_packets / one.window)
        for c in own
        if c.window_packets
    }


def _check(connections: list[Connection], back: str) -> None:
    if not connections:
        raise ValueError("it needs connections both ways over the same two links")
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
    times = (Fraction(str(t)) for t in (link.data_s, link.ack_s, link.delay_s))
    return Side(window, *times)

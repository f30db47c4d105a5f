"""ACKs apart from data at a bottleneck: Linux's remedies for ACK compression, as tc has them.

netem decides when a packet leaves as it enters, so nothing can overtake in it. Here HTB keeps the
rate and hands out packets from two queues. It lets a packet go when its transmission begins, with
no credit for idle time (a burst of one byte); the delay's netem, further on, then adds the
transmission itself.
"""

from collections.abc import Iterable

from twoway.spec.experiment import Direction

# IPv4, TCP, and in all less than 128 bytes: 40 and 40 bytes of options at most make a pure ACK.
_IS_ACK = "protocol ip u32 match ip protocol 6 0xff match u16 0 0xff80 at 2"
_BANDS = {
    # Band 1 first, and one packet of the other at a time.
    "priority": ("prio bands 2 priomap" + " 1" * 16, ()),
    # By turns: an MTU of ACKs, a segment of data.
    "own": ("drr", ("1", "2")),
}


def root_arguments(direction: Direction) -> tuple[str, ...]:
    """The root qdisc, which knows sizes on the link."""
    return tuple(f"stab overhead {direction.overhead_bytes} htb default 1".split())


def inner_lines(dev: str, direction: Direction) -> Iterable[str]:
    """Lines of a tc batch for what is inside the root qdisc.

    Args:
        dev: the interface.
        direction: with its own queue for ACKs.
    """
    rate_bit = round(direction.start_mbit * 1e6)
    kind, classes = _BANDS[direction.ack_queue]
    yield f"class add dev {dev} parent 1: classid 1:1 htb rate {rate_bit}bit burst 1 cburst 1"
    yield f"qdisc add dev {dev} parent 1:1 handle 2: {kind}"
    for number in classes:
        yield f"class add dev {dev} parent 2: classid 2:{number} drr"
    for number in ("1", "2"):
        yield f"qdisc add dev {dev} parent 2:{number} pfifo limit {direction.queue_packets}"
    yield f"filter add dev {dev} parent 2: prio 1 {_IS_ACK} flowid 2:1"
    if classes:
        yield f"filter add dev {dev} parent 2: prio 2 matchall flowid 2:2"

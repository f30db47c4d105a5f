"""A separate queue for ACKs, tc's remedy for ACK compression.

netem decides when a packet leaves as the packet enters, so nothing can overtake in it. Here HTB
keeps the rate and takes packets from two queues. HTB lets a packet go when its transmission begins,
with no credit for idle time (a burst of one byte); the netem that adds the link's propagation delay
then adds the transmission time as well (docs/decisions/0009).
"""

from collections.abc import Iterable

from twoway.spec.experiment import Direction

# TCP, and less than 128 bytes: a pure ACK has 40 bytes, or 60 of IPv6, and at most 40 of options.
_ARE_ACKS = (
    "prio 1 protocol ip u32 match ip protocol 6 0xff match u16 0 0xff80 at 2",
    # IPv6 counts what follows its header.
    "prio 2 protocol ipv6 u32 match ip6 protocol 6 0xff match u16 0 0xffc0 at 4",
)
_BANDS = {
    # Strict priority: ACKs (band 1) first, data (band 2) if no ACK waits.
    "priority": ("prio bands 2 priomap" + " 1" * 16, ()),
    # In turn: ACKs of an MTU in all, then a segment of data.
    "own": ("drr", ("1", "2")),
}


def root_arguments(direction: Direction) -> tuple[str, ...]:
    """Build the arguments of the root qdisc, HTB with sizes on the link.

    tc refuses a table of sizes that changes none, `stab overhead 0`.
    """
    overhead = direction.overhead_bytes
    sizes = ("stab", "overhead", str(overhead)) if overhead else ()
    return (*sizes, "htb", "default", "1")


def inner_lines(dev: str, direction: Direction) -> Iterable[str]:
    """List the tc batch lines for the inside of the root qdisc.

    The lines add classes, queues and filters.

    Args:
        dev: the interface.
        direction: a direction with a separate queue for ACKs.
    """
    rate_bit = round(direction.start_mbit * 1e6)
    kind, classes = _BANDS[direction.ack_queue]
    yield f"class add dev {dev} parent 1: classid 1:1 htb rate {rate_bit}bit burst 1 cburst 1"
    yield f"qdisc add dev {dev} parent 1:1 handle 2: {kind}"
    for number in classes:
        yield f"class add dev {dev} parent 2: classid 2:{number} drr"
    for number in ("1", "2"):
        yield f"qdisc add dev {dev} parent 2:{number} pfifo limit {direction.queue_packets}"
    for is_ack in _ARE_ACKS:
        yield f"filter add dev {dev} parent 2: {is_ack} flowid 2:1"
    if classes:
        yield f"filter add dev {dev} parent 2: prio 3 matchall flowid 2:2"

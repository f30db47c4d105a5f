"""An interface's root qdisc."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from twoway.contract.network import Framing
from twoway.links.interface import Interface

# The largest number of 32 bits, with which netem stores the whole of all packets.
_WHOLE = 2**32 - 1

# The sizes in a table for cells: those of frames of up to 16383 bytes. One message has no room for
# twice as many.
_SIZES = 1 << 14

# tc's words for the place of the qdisc inside a root.
INSIDE = "parent 1:1 handle 2:"

# Paths into tc's output, with the values expected at them.
Readback = tuple[tuple[tuple[str, ...], Any], ...]


@dataclass(frozen=True)
class Shaper:
    """An interface's root qdisc, and what `tc -j qdisc show` must print.

    Attributes:
        interface: the interface.
        arguments: the qdisc's kind and options, as for tc.
        readback: what must be read back.
        inner: lines of a tc batch that add the classes, qdiscs and filters inside.
        is_ours: the kind is one of our modules, with a plugin for tc.
        place: tc's words for its place on the interface.
        sizes: tc's words for the sizes that its packets have on the link, before the kind.
        home: tc's words for the namespace of its pool or medium, used when the qdisc is added.
        older_tc: tc may be older than this qdisc of the kernel, and then needs our plugin.
    """

    interface: Interface
    arguments: tuple[str, ...]
    readback: Readback
    inner: tuple[str, ...] = ()
    older_tc: bool = False
    is_ours: bool = False
    place: str = "root"
    sizes: tuple[str, ...] = ()
    home: tuple[str, ...] = ()

    def in_namespace(self, node: str) -> "Shaper":
        """Join a pool or medium in a node's namespace; tc must name another node's namespace."""
        if node == self.interface.node:
            return self
        return replace(self, home=("netns", node))

    @property
    def is_channel(self) -> bool:
        """True for our qdisc dtm, which has a clock and events to record."""
        return self.arguments[0] == "dtm"

    @property
    def module(self) -> str | None:
        """The module of ours that the qdisc needs; None for qdiscs of the kernel."""
        return f"sch_{self.arguments[0]}" if self.is_ours else None


def options(kind: str, values: dict[str, Any]) -> Readback:
    """Expect a qdisc of one kind, with certain values of options."""
    return ((("kind",), kind), *((("options", name), value) for name, value in values.items()))


def htb(
    interface: Interface, rate_mbit: float, framing: Framing, inside: tuple[str, ...]
) -> Shaper:
    """Build an HTB that keeps a rate for the qdiscs inside; packets have their size on the link."""
    sizes = sizes_on_link(framing)
    # tc refuses `stab overhead 0`, a table of sizes that changes nothing.
    if framing.overhead_bytes and not sizes:
        sizes = ("stab", "overhead", str(framing.overhead_bytes))
    rate = f"htb rate {round(rate_mbit * 1e6)}bit burst 1 cburst 1"
    return Shaper(
        interface,
        ("htb", "default", "1"),
        ((("kind",), "htb"),),
        (f"class add dev {interface.name} parent 1: classid 1:1 {rate}", *inside),
        sizes=sizes,
    )


def sizes_on_link(framing: Framing) -> tuple[str, ...]:
    """Build tc's table of sizes for ATM's cells, with an entry for each size; none without cells.

    Linux counts cells of 48 bytes with 5 of header here; netem's rate alone counts others.
    """
    if not framing.cell_bytes:
        return ()
    words = f"stab mtu {_SIZES - 1} tsize {_SIZES} linklayer atm"
    return tuple(f"{words} overhead {framing.overhead_bytes}".split())


def wrap_queue(shaper: Shaper, framing: Framing, inside: tuple[str, ...]) -> Shaper:
    """Put a queue inside one of our shapers, and count cells."""
    return replace(shaper, sizes=sizes_on_link(framing), inner=(*shaper.inner, *inside))


def egress_action(dev: str, action: str) -> tuple[str, ...]:
    """Build the tc batch lines of an action on all packets that leave an interface."""
    return (f"qdisc add dev {dev} clsact", f"filter add dev {dev} egress matchall action {action}")


def six_digits(kind: str, values: Mapping[str, float]) -> Readback:
    """Expect numbers with six digits, as `tc -j qdisc show` prints netem's."""
    return tuple((("options", kind, name), float(f"{value:.6g}")) for name, value in values.items())


def shares_read(kind: str, values: Mapping[str, float]) -> Readback:
    """Expect shares of packets as netem stores them: whole numbers of 32 bits."""
    return six_digits(kind, {n: round(_WHOLE * value) / _WHOLE for n, value in values.items()})

"""What a link's elements are to the kernel: a file each, with tc's words.

A file's class adds to the fields of `twoway/contract/links` their contradictions and their words.
Its base says where on the link it acts: before the queue, as the queue, as the delay, or behind the
queue.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

from twoway.contract import links
from twoway.spec.interface import Interface
from twoway.spec.shaper import Readback, Shaper

if TYPE_CHECKING:
    from twoway.spec.experiment import Direction, Experiment, Profile

_WHOLE = 2**32 - 1


class Element(links.Element):
    """Something that a link does to packets, checked and in tc's words."""

    def read(self, folder: Path) -> Self:  # noqa: ARG002 - for subclasses
        """Read the files that it names, from its profile's folder.

        Raises: ValueError with a sentence after the field that names the file, as ".x: ...".
        """
        return self

    def problems(self) -> list[str]:
        """List contradictions between its fields, each after the field: ": ..." or ".x: ..."."""
        return []

    def link_problems(self, direction: "Direction", profile: "Profile") -> list[str]:  # noqa: ARG002
        """List likewise contradictions with others of its direction or profile."""
        return []

    def setting_problems(self, experiment: "Experiment") -> list[str]:  # noqa: ARG002
        """List what an experiment's stack or kernel does not allow, each after the field."""
        return []

    @property
    def needs_guest(self) -> bool:
        """True if it needs the guest of user-mode Linux.

        Traffic starts there at a time known before set-up, and captures are exact to the
        nanosecond.
        """
        return False

    @property
    def has_own_delay(self) -> bool:
        """True if it takes one queue, and delays that no other direction has."""
        return False

    @property
    def has_one_delay(self) -> bool:
        """True if it takes one of these delays alone."""
        return False


def egress_action(dev: str, action: str) -> tuple[str, ...]:
    """Build the tc batch lines of an action on all that leaves an interface."""
    return (
        f"qdisc add dev {dev} clsact",
        f"filter add dev {dev} egress matchall action {action}",
    )


def six_digits(kind: str, values: Mapping[str, float]) -> Readback:
    """Expect numbers of netem's: `tc -j qdisc show` prints six digits of each."""
    return tuple((("options", kind, name), float(f"{value:.6g}")) for name, value in values.items())


def shares_read(kind: str, values: Mapping[str, float]) -> Readback:
    """Expect shares of packets, which netem has as whole numbers of 32 bits."""
    return six_digits(kind, {n: round(_WHOLE * value) / _WHOLE for n, value in values.items()})


class BeforeQueue(Element):
    """Something before the queue of an interface."""

    def lines(self, dev: str) -> tuple[str, ...]:
        """List the tc batch lines that add it to an interface."""
        raise NotImplementedError


class Queue(Element):
    """A queue instead of a drop-tail one of a rate_mbit."""

    @property
    def leaves_at_start(self) -> bool:
        """True if packets leave at the begin of transmission, not its end.

        cake and HTB do so, netem and dtm do not (docs/decisions/0021).
        """
        return False

    @property
    def is_under_htb(self) -> bool:
        """True if HTB keeps the rate."""
        return False

    def shaper(self, interface: Interface, direction: "Direction") -> Shaper:
        """Build the root qdisc of the queue's interface."""
        raise NotImplementedError


class RatedQueue(links.RatedQueue, Queue):
    """A queue with a rate of its own, instead of a rate_mbit."""


class ManagedQueue(links.ManagedQueue, Queue):
    """Queues of a rate_mbit that a word names."""

    @property
    def leaves_at_start(self) -> bool:
        """True: cake and HTB do so."""
        return True

    @property
    def is_under_htb(self) -> bool:
        """True if HTB keeps the rate."""
        return True


class Delay(links.Delay, Element):
    """A propagation delay instead of a delay_ms."""

    def shaper(self, interface: Interface, limit: int) -> Shaper:
        """Build the root qdisc of the delay's interface, for a limit of packets."""
        raise NotImplementedError


class BehindQueue(links.BehindQueue, Element):
    """Something that the netem of the delay does, too, or an action before it."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of netem behind those of its delay."""
        return ()

    def readback(self) -> Readback:
        """List what `tc -j qdisc show` must print of them."""
        return ()

    def changes(self, stop_ns: int) -> Iterable[tuple[int, Self]]:  # noqa: ARG002 - for subclasses
        """List what it becomes during the traffic, with times in ns on the plan's clock."""
        return ()

    def lines(self, dev: str) -> tuple[str, ...]:  # noqa: ARG002 - for subclasses
        """List the tc batch lines that add more to the interface."""
        return ()

"""The elements of a link as the kernel has them: one file each, with the words for tc.

Each file's class adds checks and tc's words to a class of `twoway/contract/links`. Its base class
says where on the link it acts: before the queue, as the queue, as the delay, or behind the queue.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

from twoway.contract import links
from twoway.description.interface import Interface
from twoway.description.shaper import Readback, Shaper

if TYPE_CHECKING:
    from twoway.description.experiment import Direction, Experiment, Profile

_WHOLE = 2**32 - 1


class Element(links.Element):
    """One element of a link: it acts on packets, checks its fields and writes tc's words."""

    def read(self, folder: Path) -> Self:  # noqa: ARG002 - for subclasses
        """Read the files that the element names, from the folder of its profile.

        Raises: ValueError with a sentence after the field that names the file, as ".x: ...".
        """
        return self

    def problems(self) -> list[str]:
        """List contradictions between its fields, each after the field: ": ..." or ".x: ..."."""
        return []

    def link_problems(self, direction: "Direction", profile: "Profile") -> list[str]:  # noqa: ARG002
        """List contradictions with other fields of the direction or profile."""
        return []

    def setting_problems(self, experiment: "Experiment") -> list[str]:  # noqa: ARG002
        """List what an experiment's stack or kernel does not allow, each after the field."""
        return []

    @property
    def needs_guest(self) -> bool:
        """True if the element needs the guest of user-mode Linux.

        In user-mode Linux the traffic's start is known before set-up, and captures are exact to the
        nanosecond.
        """
        return False

    @property
    def has_own_delay(self) -> bool:
        """True if the element needs a direction with one queue and with delays of its own."""
        return False

    @property
    def has_one_delay(self) -> bool:
        """True if the element needs a direction with one delay."""
        return False


def egress_action(dev: str, action: str) -> tuple[str, ...]:
    """Build the tc batch lines of an action on all packets that leave an interface."""
    return (
        f"qdisc add dev {dev} clsact",
        f"filter add dev {dev} egress matchall action {action}",
    )


def six_digits(kind: str, values: Mapping[str, float]) -> Readback:
    """Expect numbers with six digits, as `tc -j qdisc show` prints netem's."""
    return tuple((("options", kind, name), float(f"{value:.6g}")) for name, value in values.items())


def shares_read(kind: str, values: Mapping[str, float]) -> Readback:
    """Expect shares of packets as netem stores them: whole numbers of 32 bits."""
    return six_digits(kind, {n: round(_WHOLE * value) / _WHOLE for n, value in values.items()})


class BeforeQueue(Element):
    """An element before the queue of an interface."""

    def lines(self, dev: str) -> tuple[str, ...]:
        """List the tc batch lines that add the element to an interface."""
        raise NotImplementedError


class Queue(Element):
    """An element that takes the place of a drop-tail queue with a rate_mbit."""

    @property
    def leaves_at_start(self) -> bool:
        """True if packets leave when their transmission begins, not when it ends.

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
    """A queue with its own rate, in place of rate_mbit."""


class ManagedQueue(links.ManagedQueue, Queue):
    """Queues that keep rate_mbit and are chosen by a word."""

    @property
    def leaves_at_start(self) -> bool:
        """True: packets leave cake and HTB when their transmission begins."""
        return True

    @property
    def is_under_htb(self) -> bool:
        """True if HTB keeps the rate."""
        return True


class Delay(links.Delay, Element):
    """A propagation delay in place of delay_ms."""

    def shaper(self, interface: Interface, limit: int) -> Shaper:
        """Build the root qdisc of the delay's interface, for a limit of packets."""
        raise NotImplementedError


class BehindQueue(links.BehindQueue, Element):
    """An element that is an argument of the delay's netem, or an action before it."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The element's arguments of netem, which follow those of the delay."""
        return ()

    def readback(self) -> Readback:
        """List what `tc -j qdisc show` must print of these arguments."""
        return ()

    def changes(self, stop_ns: int) -> Iterable[tuple[int, Self]]:  # noqa: ARG002 - for subclasses
        """List the element's states during the traffic, with times in ns on the plan's clock."""
        return ()

    def lines(self, dev: str) -> tuple[str, ...]:  # noqa: ARG002 - for subclasses
        """List the tc batch lines that the element needs besides netem."""
        return ()

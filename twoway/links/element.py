"""A link and what all its elements have.

An element's class adds a field to every direction of a link, named by its `FIELD`. Its base class
says where on the link it acts: before the queue, as the queue, as the delay, or behind the queue.
The elements themselves say what they do to packets; no reader has to know their classes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from capture_analysis.columns import BoolArray, IntArray
from pydantic import Field

from twoway.contract.model import Model
from twoway.contract.network import Framing
from twoway.links.interface import Interface
from twoway.links.shaper import Readback, Shaper, htb
from twoway.links.timetable import Timetable

_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Setting:
    """The parts of an experiment that an element may depend on.

    Attributes:
        mtu_bytes: IP packet size limit of every interface.
        kernel: the experiment's `kernel`.
        duration_s: seconds of traffic.
        has_ipv6: True if anything in the experiment uses IPv6.
    """

    mtu_bytes: int
    kernel: str | None
    duration_s: float
    has_ipv6: bool = False


class Part(Model):
    """A field of a profile that describes links, with a page on the site.

    Attributes:
        FIELD: the field's name.
        TITLE: the title of its page.
        DESCRIPTION: what the field means, for the schema.
    """

    FIELD: ClassVar[str]
    TITLE: ClassVar[str]
    DESCRIPTION: ClassVar[str]

    @property
    def needs_guest(self) -> bool:
        """True if it needs the guest of user-mode Linux.

        In user-mode Linux the traffic's start is known before set-up, and captures are exact to the
        nanosecond.
        """
        return False


class Element(Part):
    """One element of a link, made from the value of a direction's field.

    Attributes:
        LOSES: True if it loses packets behind the queue, which no capture of the queue shows.
        KEEPS_SPACING: True if packets arrive with the spacing with which they leave the queue.
    """

    LOSES: ClassVar[bool] = False
    KEEPS_SPACING: ClassVar[bool] = True

    @classmethod
    def field(cls) -> tuple[Any, Any]:
        """Return the type and the default of the direction's field."""
        return cls | None, Field(default=None, description=cls.DESCRIPTION)

    @classmethod
    def from_value(cls, value: Any) -> Self | None:
        """Make the element of a field's value; None if it has none."""
        found: Self | None = value
        return found

    def read(self, folder: Path) -> Self:  # noqa: ARG002 - for subclasses
        """Read the files that the element names, from the folder of its profile.

        Raises: ValueError with a sentence after the field that names the file, as ".x: ...".
        """
        return self

    def problems(self) -> list[str]:
        """List contradictions between its fields, each after the field: ": ..." or ".x: ..."."""
        return []

    def link_problems(self, link: "Link", pools: Mapping[str, int]) -> list[str]:  # noqa: ARG002
        """List contradictions with other fields of the link, or with the profile's pools."""
        return []

    def setting_problems(self, setting: Setting) -> list[str]:  # noqa: ARG002 - for subclasses
        """List what an experiment's stack or kernel does not allow, each after the field."""
        return []

    @property
    def has_own_delay(self) -> bool:
        """True if the element needs a direction with one queue and with delays of its own."""
        return False

    @property
    def has_one_delay(self) -> bool:
        """True if the element needs a direction with one delay."""
        return False


class BeforeQueue(Element):
    """An element before the queue of an interface."""

    @property
    def is_counted(self) -> bool:
        """True if a counter of the interface's qdiscs has its drops."""
        return True

    def refuses(self, time_ns: IntArray, frame_bytes: IntArray) -> BoolArray:
        """Mark the frames that it drops.

        Args:
            time_ns: shape (n,), arrival of the frames, ascending.
            frame_bytes: shape (n,), Ethernet header included.
        """
        raise NotImplementedError

    @property
    def police(self) -> str:
        """The action on packets that leave an interface, in tc's words; empty without one."""
        raise NotImplementedError


class RateShaper(Element):
    """A shaper with its own rate, in place of rate_mbit; it takes any queue."""

    def shaper(self, interface: Interface, link: "Link") -> Shaper:
        """Build the root qdisc of the queue's interface."""
        raise NotImplementedError

    @property
    def start_mbit(self) -> float:
        """The rate at the start of traffic, Mbit/s; the mean rate for a trace."""
        raise NotImplementedError

    @property
    def least_mbit(self) -> float:
        """The lowest rate, Mbit/s."""
        raise NotImplementedError

    @property
    def most_mbit(self) -> float:
        """The highest rate, Mbit/s."""
        raise NotImplementedError

    @property
    def rate_note(self) -> str:
        """The words after `start_mbit` in a label."""
        return "at first"

    @property
    def table(self) -> Timetable | None:
        """The table by which packets leave; None without one."""
        return None

    @property
    def burst_ns(self) -> int:
        """The time whose packets may leave at once."""
        return 0


class ManagedQueue(Element):
    """Queues in place of a drop-tail queue."""

    @property
    def name(self) -> str:
        """The queue's name, for people."""
        raise NotImplementedError

    @property
    def holds_packets(self) -> bool:
        """True if a packet may wait although the link is free."""
        return False

    @property
    def cuts_segments(self) -> bool:
        """True if it cuts a packet of many segments."""
        return False

    @property
    def marks(self) -> Literal["never", "asked", "always"]:
        """It marks packets of flows with ECN, instead of dropping them, if `ecn` asks for that."""
        return "never"

    @property
    def is_under_htb(self) -> bool:
        """True if HTB keeps a rate_mbit."""
        return True

    @property
    def transmits_behind(self) -> bool:
        """True if the delay's netem adds the transmission time of a rate_mbit."""
        return False

    def put_inside(self, dev: str, link: "Link") -> tuple[str, ...]:
        """List the tc batch lines that put the queue inside class 1:1 of a shaper."""
        raise NotImplementedError

    def limited(self, link: "Link") -> tuple[tuple[str, str], ...]:  # noqa: ARG002 - for subclasses
        """List place and words of each qdisc inside whose limit is queue_packets."""
        return ()

    @property
    def why_no_limit(self) -> str:
        """The reason why `limited` lists none, after "and"."""
        return f"{self.name} has none"

    def shaper(self, interface: Interface, link: "Link") -> Shaper:
        """Build the root qdisc of the queue's interface, which keeps a rate_mbit."""
        return htb(interface, link.start_mbit, link, self.put_inside(interface.name, link))


class QueueByWord(ManagedQueue):
    """Queues that a word chooses; the usual word means drop-tail.

    Attributes:
        WORDS: the type of the field's value.
        USUAL: the word for the absence of such an element.
        word: the field's value.
    """

    WORDS: ClassVar[Any]
    USUAL: ClassVar[str]

    word: str

    @classmethod
    def field(cls) -> tuple[Any, Any]:
        """Return the type and the default of the direction's field."""
        return cls.WORDS, Field(default=cls.USUAL, description=cls.DESCRIPTION)

    @classmethod
    def from_value(cls, value: Any) -> Self | None:
        """Make the element of a field's value; None if it has none."""
        return None if value == cls.USUAL else cls(word=value)

    @property
    def name(self) -> str:
        """The queue's name, for people."""
        return self.word


class Delay(Element):
    """A propagation delay in place of delay_ms."""

    KEEPS_SPACING: ClassVar = False

    @property
    def longest_ns(self) -> int:
        """The longest delay."""
        raise NotImplementedError

    @property
    def shortest_ns(self) -> int:
        """The shortest delay."""
        raise NotImplementedError

    def shaper(self, interface: Interface, limit: int, inside_ns: int) -> Shaper:
        """Build the root qdisc of the delay's interface.

        Args:
            interface: the interface.
            limit: the most packets on their way.
            inside_ns: the part of the delay that a qdisc inside has already added.
        """
        raise NotImplementedError


class BehindQueue(Element):
    """An element behind the queue: an argument of the delay's netem, or an action before it.

    Each such class sets LOSES and KEEPS_SPACING itself.
    """

    @property
    def least_delay_ns(self) -> int:
        """The delay that netem needs for the element's arguments."""
        return 0

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


class Elements(tuple[Element, ...]):
    """All elements of a link."""

    __slots__ = ()

    @property
    def lose(self) -> bool:
        """True if one of them loses packets behind the queue."""
        return any(element.LOSES for element in self)

    @property
    def drop(self) -> bool:
        """True if one of them loses packets behind the queue, or drops some before it."""
        return self.lose or self.contains(BeforeQueue)

    @property
    def keep_spacing(self) -> bool:
        """True if all of them keep the spacing with which packets leave the queue."""
        return all(element.KEEPS_SPACING for element in self)

    @property
    def act_behind(self) -> bool:
        """True if one of them acts on packets behind the queue."""
        return self.contains(BehindQueue, Delay)

    @property
    def table(self) -> Timetable | None:
        """The table by which packets leave the queue; None without one."""
        shaper = self.find(RateShaper)
        return shaper.table if shaper else None

    def refuse(
        self, time_ns: IntArray, frame_bytes: IntArray, *, counted: bool = True
    ) -> BoolArray:
        """Mark the frames that do not reach the queue.

        Args:
            time_ns: as of BeforeQueue.refuses.
            frame_bytes: as of BeforeQueue.refuses.
            counted: False for those alone that no counter of the interface's qdiscs has.
        """
        refused = np.zeros(len(time_ns), dtype=np.bool_)
        for element in self.list_kind(BeforeQueue):
            if element.is_counted > counted:
                continue
            come = np.flatnonzero(~refused)
            refused[come] = element.refuses(time_ns[come], frame_bytes[come])
        return refused

    def list_kind(self, kind: type[_Kind]) -> list[_Kind]:
        """List the elements of a kind, in the order of their fields."""
        return [element for element in self if isinstance(element, kind)]

    def find(self, kind: type[_Kind]) -> _Kind | None:
        """Find the element of a kind, if there is one.

        Raises: ValueError if there are several: one answer would leave the others out.
        """
        found = self.list_kind(kind)
        if len(found) > 1:
            raise ValueError(f"{kind.__name__}: {len(found)} elements, and at most one is possible")
        return found[0] if found else None

    def contains(self, *kinds: type) -> bool:
        """Tell whether there is an element of one of these kinds."""
        return any(isinstance(element, kinds) for element in self)


class Link(Framing):
    """One direction of a link: rate and queue at one hop, delay at another.

    Attributes:
        KINDS: the elements that a link may have besides rate, queue and delay, by field.
    """

    KINDS: ClassVar[Mapping[str, type[Element]]] = {}

    rate_mbit: Annotated[float, Field(ge=0.001, le=100_000)] | None = Field(
        default=None,
        description="link rate in Mbit/s (10^6 bit/s), unless it changes or is a dtm channel",
    )
    table: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        default=None,
        description="a table's file, beside the profile, that fills in `rate`, `delay`, `loss` and "
        "queue_packets: CSV or Parquet with columns such as time_s, rate_mbit, delay_ms, "
        "loss_percent and queue_packets, or a trace of TheaterQ or mahimahi",
    )
    queue_packets: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
        description="drop-tail limit in packets, the one in service included"
    )
    ecn: bool = Field(
        default=False,
        description="the queue's manager marks packets of flows with stack.ecn, instead "
        "of dropping "
        "them",
    )
    mark_above_ms: Annotated[float, Field(ge=0, le=1000)] = Field(
        default=0,
        description="codel and fq_codel also mark each packet of flows with stack.ecn that waited "
        "longer than this, as DCTCP expects; 0: none",
    )
    delay_ms: Annotated[float, Field(ge=0, le=274_000)] | None = Field(
        default=None,
        description="propagation delay in ms, from the end of transmission to arrival, unless it "
        "changes; netem's, up to 274 s",
    )

    @property
    def elements(self) -> Elements:
        """The link's elements besides rate, queue and delay, in the order of its fields."""
        found = (kind.from_value(getattr(self, name)) for name, kind in self.KINDS.items())
        return Elements(element for element in found if element is not None)

    @property
    def shaper_overhead(self) -> int:
        """Bytes that one of our shapers adds to a frame; with cells a table of sizes adds them."""
        return 0 if self.cell_bytes else self.overhead_bytes

    @property
    def rate_shaper(self) -> RateShaper | None:
        """The shaper with its own rate; None if the link has a rate_mbit."""
        return self.elements.find(RateShaper)

    @property
    def manager(self) -> ManagedQueue | None:
        """The queue in place of a drop-tail queue; None without one."""
        return self.elements.find(ManagedQueue)

    @property
    def behind_queue(self) -> list[BehindQueue]:
        """Elements that netem applies besides the delay, in the order of its arguments."""
        return self.elements.list_kind(BehindQueue)

    @property
    def delay_ns(self) -> int:
        """Propagation delay, ns; the longest if it changes."""
        if changing := self.elements.find(Delay):
            return changing.longest_ns
        return round((self.delay_ms or 0) * 1e6)

    @property
    def start_mbit(self) -> float:
        """The link's rate at the start of traffic, Mbit/s; the mean rate for a trace."""
        shaper = self.rate_shaper
        return shaper.start_mbit if shaper else self.rate_mbit or 0

    @property
    def least_mbit(self) -> float:
        """The lowest rate that the link may have, Mbit/s."""
        shaper = self.rate_shaper
        return shaper.least_mbit if shaper else self.rate_mbit or 0

    @property
    def most_mbit(self) -> float:
        """The highest rate that the link may have, Mbit/s."""
        shaper = self.rate_shaper
        return shaper.most_mbit if shaper else self.rate_mbit or 0

    @property
    def transmits_behind(self) -> bool:
        """True if the delay's netem adds the transmission time."""
        return self.leaves_at_start and self.manager is not None and self.manager.transmits_behind

    @property
    def acts_behind(self) -> bool:
        """True if an element acts on packets behind the queue, where the delay is."""
        return bool(self.delay_ns or self.transmits_behind or self.behind_queue)

    @property
    def leaves_at_start(self) -> bool:
        """True if packets leave when their transmission begins, not when it ends.

        HTB and cake, which keep the rate of a managed queue, let a packet go so; netem and our own
        shapers do not (decision 0021). A half-duplex medium is the profile's, not the link's.
        """
        return self.manager is not None and self.rate_shaper is None

    @property
    def credit_ns(self) -> int:
        """The most by which a packet may leave too early after an idle time, ns.

        HTB's smallest burst is a byte, whose time tc expresses in ticks of 64 ns
        (decision 0021).
        """
        if not self.leaves_at_start or self.manager is None or not self.manager.is_under_htb:
            return 0
        return int(8e3 / self.start_mbit) // 64 * 64

"""Active queue management: cake, which keeps a rate itself, or a qdisc inside a shaper."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

from twoway.contract.network import ETHERNET_BYTES
from twoway.links.element import Link, QueueByWord, Setting
from twoway.links.interface import Interface
from twoway.links.queue_limit import QueueLimit
from twoway.links.shaper import INSIDE, Shaper, options

# AQMs with an option that makes them mark, and AQMs that always mark.
_MARKS = ("codel", "pie", "fq_codel", "fq_pie", "red", "choke")
_ALWAYS_MARKS = ("cake", "cake-flowblind", "dualpi2")
# AQMs that mark above a threshold.
_HAVE_THRESHOLD = ("codel", "fq_codel")
# The packet size that red assumes.
_AVERAGE_BYTES = 1500


class ActiveQueue(QueueByWord):
    """A queue that drops or marks packets before it is full."""

    FIELD: ClassVar = "aqm"
    TITLE: ClassVar = "Queue management"
    DESCRIPTION: ClassVar = (
        "the queue's manager: `cake` (CoDel, a queue for each flow) and `cake-flowblind` "
        "(CoDel, one queue), which have no limit of packets; or the kernel's qdisc of that name "
        "with queue_packets as its limit, `fq_codel` only by queue_limit; `dualpi2` with "
        "`kernel: newest` alone. HTB or cake keeps a rate_mbit; a rate that changes, a dtm channel "
        "and a half-duplex medium take the qdisc inside"
    )
    WORDS: ClassVar[Any] = Literal[
        "drop-tail",
        "cake",
        "cake-flowblind",
        "codel",
        "pie",
        "sfq",
        "fq",
        "fq_codel",
        "fq_pie",
        "red",
        "choke",
        "dualpi2",
    ]
    USUAL: ClassVar = "drop-tail"

    @property
    def is_under_htb(self) -> bool:
        """True if HTB keeps a rate_mbit; cake keeps it itself."""
        return not self.word.startswith("cake")

    @property
    def marks(self) -> Literal["never", "asked", "always"]:
        """It marks packets of flows with ECN, instead of dropping them, if `ecn` asks for that."""
        if self.word in _ALWAYS_MARKS:
            return "always"
        return "asked" if self.word in _MARKS else "never"

    @property
    def cuts_segments(self) -> bool:
        """True for cake, which serves segments one by one."""
        return not self.is_under_htb

    @property
    def why_no_ecn(self) -> str:
        """The reason why the field `ecn` is refused; empty if it is allowed."""
        said = {"always": "always marks, without it", "never": "marks nothing", "asked": ""}
        return f"{self.word} {said[self.marks]}" if said[self.marks] else ""

    @property
    def has_threshold(self) -> bool:
        """True if the field `mark_above_ms` is allowed."""
        return self.word in _HAVE_THRESHOLD

    def setting_problems(self, setting: Setting) -> list[str]:
        """Refuse dualpi2 on a kernel without it."""
        if self.word != "dualpi2" or setting.kernel not in (None, "guest", "wide", "6.1"):
            return []
        problem = ": dualpi2 came with Linux 6.17: an experiment with `kernel: newest` may have it"
        return [f"{problem}, got kernel {setting.kernel or 'guest'}"]

    def shaper(self, interface: Interface, link: Link) -> Shaper:
        """Build cake, or the managed queue inside HTB."""
        if not self.is_under_htb:
            return self._cake(interface, link)
        return replace(super().shaper(interface, link), older_tc=self.word == "dualpi2")

    def put_inside(self, dev: str, link: Link) -> tuple[str, ...]:
        """Build the qdisc, which a shaper asks for packets."""
        return (f"qdisc add dev {dev} {INSIDE} {self._managed(link)}",)

    def limited(self, link: Link) -> tuple[tuple[str, str], ...]:
        """List the qdisc, unless queue_packets is not its limit, or Linux cannot change it."""
        if self.word == "sfq" or not self._has_limit(link):
            return ()
        return ((INSIDE, self._managed(link)),)

    @property
    def why_no_limit(self) -> str:
        """The reason why `limited` lists none, after "and"."""
        return "Linux cannot change that of sfq" if self.word == "sfq" else super().why_no_limit

    def _has_limit(self, link: Link) -> bool:
        """Tell whether queue_packets is its limit: of fq_codel only by a schedule."""
        if self.word == "fq_codel":  # whose own limit of 10240 packets only bounds memory
            return link.elements.contains(QueueLimit)
        return self.is_under_htb

    def _cake(self, interface: Interface, link: Link) -> Shaper:
        """Build a cake, whose own shaper is exact.

        A packet leaves cake when its transmission starts, not when it ends (decision 0021).
        cake adds its overhead to the IP packet, not to the frame.
        """
        rate_bit = round(link.start_mbit * 1e6)
        isolation = self._isolation
        overhead = link.overhead_bytes + ETHERNET_BYTES
        words = f"cake bandwidth {rate_bit}bit besteffort {isolation} overhead {overhead}"
        words += " atm" if link.cell_bytes else ""
        said = {
            "bandwidth": rate_bit // 8,
            "diffserv": "besteffort",
            "flowmode": isolation,
            "overhead": overhead,
        }
        return Shaper(interface, tuple(words.split()), options("cake", said))

    @property
    def _isolation(self) -> str:
        """The word of cake for its queues: one for each flow, or one for all."""
        return "flowblind" if self.word == "cake-flowblind" else "flows"

    def _managed(self, link: Link) -> str:
        """Build the arguments of a managed queue; a field that is not given keeps tc's default."""
        if not self.is_under_htb:
            return f"cake unlimited besteffort {self._isolation}"
        limit, rate_bit = link.queue_packets, round(link.start_mbit * 1e6)
        words = f"{self.word} limit {limit}" if self._has_limit(link) else self.word
        if self.word == "choke":
            words += f" bandwidth {rate_bit}bit"
        if self.word == "red":  # red counts bytes
            size = _AVERAGE_BYTES
            words = f"red limit {limit * size} avpkt {size} bandwidth {rate_bit}bit"
        if link.ecn:
            words += " ecn"
        elif self.word == "fq_codel":
            words += " noecn"
        if link.mark_above_ms:
            words += f" ce_threshold {round(link.mark_above_ms * 1000)}us"
        return words

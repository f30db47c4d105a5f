"""Active queue management: cake, which keeps the rate itself, or a qdisc under HTB."""

from typing import TYPE_CHECKING

from twoway.contract.links import aqm
from twoway.contract.network import ETHERNET_BYTES
from twoway.description.interface import Interface
from twoway.description.links import ManagedQueue
from twoway.description.shaper import Shaper, htb, options

if TYPE_CHECKING:
    from twoway.description.experiment import Direction, Experiment

# AQMs with an option that makes them mark, and AQMs that always mark.
_MARKS = ("codel", "pie", "fq_codel", "fq_pie", "red", "choke")
_ALWAYS_MARKS = ("cake", "cake-flowblind", "dualpi2")
# AQMs that mark above a threshold.
_HAVE_THRESHOLD = ("codel", "fq_codel")
# The packet size that red assumes.
_AVERAGE_BYTES = 1500


class ActiveQueue(aqm.ActiveQueue, ManagedQueue):
    """A queue that drops or marks packets before it is full."""

    @property
    def is_under_htb(self) -> bool:
        """True if HTB keeps the rate; cake keeps the rate itself."""
        return not self.word.startswith("cake")

    @property
    def why_no_ecn(self) -> str:
        """The reason why the field `ecn` is refused; empty if it is allowed."""
        if self.word in _ALWAYS_MARKS:
            return f"{self.word} always marks, without it"
        return "" if self.word in _MARKS else f"{self.word} marks nothing"

    @property
    def has_threshold(self) -> bool:
        """True if the field `mark_above_ms` is allowed."""
        return self.word in _HAVE_THRESHOLD

    def setting_problems(self, experiment: "Experiment") -> list[str]:
        """Refuse dualpi2 on a kernel without it."""
        if self.word != "dualpi2" or experiment.kernel not in (None, "guest"):
            return []
        problem = ": dualpi2 came with Linux 6.17: an experiment with `kernel: newest` may have it"
        return [f"{problem}, got kernel {experiment.kernel or 'guest'}"]

    def shaper(self, interface: Interface, direction: "Direction") -> Shaper:
        """Build cake, or the managed queue inside HTB."""
        if not self.is_under_htb:
            return self._cake(interface, direction)
        line = f"qdisc add dev {interface.name} parent 1:1 handle 2: {self._managed(direction)}"
        given = (interface, direction.start_mbit, direction.overhead_bytes, (line,))
        return htb(*given, older_tc=self.word == "dualpi2")

    def _cake(self, interface: Interface, direction: "Direction") -> Shaper:
        """Build a cake, whose own shaper is exact.

        A packet leaves cake when its transmission starts, not when it ends (docs/decisions/0021).
        cake adds its overhead to the IP packet, not to the frame.
        """
        rate_bit = round(direction.start_mbit * 1e6)
        isolation = "flowblind" if self.word == "cake-flowblind" else "flows"
        overhead = direction.overhead_bytes + ETHERNET_BYTES
        words = f"cake bandwidth {rate_bit}bit besteffort {isolation} overhead {overhead}"
        said = {
            "bandwidth": rate_bit // 8,
            "diffserv": "besteffort",
            "flowmode": isolation,
            "overhead": overhead,
        }
        return Shaper(interface, tuple(words.split()), options("cake", said))

    def _managed(self, direction: "Direction") -> str:
        """Build the arguments of a managed queue; a field that is not given keeps tc's default."""
        limit, rate_bit = direction.queue_packets, round(direction.start_mbit * 1e6)
        words = f"{self.word} limit {limit}"
        if self.word == "fq_codel":  # whose own limit of 10240 packets only bounds memory
            words = self.word
        if self.word == "choke":
            words += f" bandwidth {rate_bit}bit"
        if self.word == "red":  # red counts bytes
            size = _AVERAGE_BYTES
            words = f"red limit {limit * size} avpkt {size} bandwidth {rate_bit}bit"
        if direction.ecn:
            words += " ecn"
        elif self.word == "fq_codel":
            words += " noecn"
        if direction.mark_above_ms:
            words += f" ce_threshold {round(direction.mark_above_ms * 1000)}us"
        return words

"""tc's words for a propagation delay that changes."""

from twoway.contract.links import delay
from twoway.description.interface import Interface
from twoway.description.links import Delay
from twoway.description.shaper import Shaper
from twoway.description.timetable import by_table, order_problems


class ChangingDelay(delay.ChangingDelay, Delay):
    """A propagation delay by a table."""

    @property
    def needs_guest(self) -> bool:
        """True: the table starts with the traffic."""
        return True

    def problems(self) -> list[str]:
        """List contradictions between fields."""
        return order_problems(self.schedule, self.repeat_s)

    @property
    def has_own_delay(self) -> bool:
        """True: it keeps packets in order, which holds for one queue only."""
        return True

    def shaper(self, interface: Interface, limit: int) -> Shaper:
        """Build a qdisc of the table."""
        return by_table(interface, self.table, limit)

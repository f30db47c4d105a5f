"""The model of Tahoe's sender in the scenarios of `scripted_receiver`, step by step."""

from collections import Counter, deque
from dataclasses import dataclass, field
from fractions import Fraction

from support.guest.scripted_receiver import LATENESS, Receiver, Scenario
from twoway.theory.tahoe.sender import Tahoe


@dataclass
class ModelPath:
    """The path and the receiver of `scripted_receiver` for the model's sender."""

    scenario: Scenario
    path: deque[int] = field(default_factory=deque)
    trace: list[tuple[str, int, list[int], int, int]] = field(default_factory=list)

    def run(self) -> list[tuple[str, int, list[int], int, int]]:
        """Return event, ack, segments sent, cwnd and ssthresh, step by step."""
        scenario = self.scenario
        sender = Tahoe(
            offered=scenario.offered,
            fast_retransmit=scenario.congestion == "tahoe",
            bsd="growth=bsd" in scenario.parameters,
            through="slow_start=bsd" in scenario.parameters,
            halves_sent="ssthresh=bsd" in scenario.parameters,
        )
        receiver = Receiver()
        lost, late = Counter(scenario.lost), Counter(scenario.late)
        for segments in scenario.writes:
            if sender.written:
                sender.cwnd = Fraction(1)  # after idling longer than the timer
            sender.written += segments
            self._note("write", sender, sender.send())
            while receiver.next < sender.written:
                if not self.path:
                    self._note("timeout", sender, sender.time_out())
                segment = self.path.popleft()
                if lost[segment]:
                    lost[segment] -= 1
                    continue
                if late[segment]:
                    late[segment] -= 1
                    self.path.insert(LATENESS, segment)
                    continue
                self._note("ack", sender, sender.acknowledge(receiver.take(segment)))
        return self.trace

    def _note(self, event: str, sender: Tahoe, sent: list[int]) -> None:
        self.path.extend(sent)
        self.trace.append((event, sender.una, sent, sender.reported_cwnd(), sender.ssthresh))

"""Congestion controls of the simulated senders: CUBIC, and BBR's model of the path."""

from collections import deque
from dataclasses import dataclass, field

# CUBIC (RFC 9438): C in segments/s^3, beta after a loss, and growth per round trip in the Reno
# region.
_SCALE, _KEPT = 0.4, 0.7
_BESIDE_RENO = 3 * (1 - _KEPT) / (1 + _KEPT)
# BBR version 1: gain in STARTUP, gains of the cycle, round trips over which the largest rate
# counts.
_STARTUP = 2.89
_CYCLE = (1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
_ROUNDS = 10
_LEAST_WINDOW = 4.0


@dataclass
class Cubic:
    """CUBIC's window after a loss (RFC 9438); the sender does slow start."""

    most: float = 0.0
    begun_ns: int = 0

    def lost(self, window: float, now_ns: int) -> float:
        """Reduce the window after a loss; return the new one."""
        self.most, self.begun_ns = window, now_ns
        return max(_KEPT * window, 2.0)

    def grown(self, window: float, acked: int, now_ns: int) -> float:
        """Return the window after an ACK of some segments."""
        time_s = (now_ns - self.begun_ns) / 1e9
        back_s: float = (self.most * (1 - _KEPT) / _SCALE) ** (1 / 3)
        target = _SCALE * (time_s - back_s) ** 3 + self.most
        more = min(max((target - window) / window, _BESIDE_RENO / window), 0.5)
        return window + acked * more


@dataclass
class Bbr:
    """BBR's rate and window: the largest delivery rate of ten rounds, and the least round trip.

    It never drains its window for the round trip (PROBE_RTT), which is due after ten seconds.
    """

    next_ns: int = 0  # when the next segment may leave
    waits: bool = False  # True until next_ns
    least_ns: int = 1 << 62
    delivered_ns: int = 0
    round_end: int = 0
    rates: deque[float] = field(default_factory=lambda: deque([0.0], maxlen=_ROUNDS))
    startup: bool = True
    drains: bool = False
    best: float = 0.0
    even_rounds: int = 0
    phase: int = 0
    phase_ns: int = 0
    flying: dict[int, tuple[int, int, int]] = field(default_factory=dict)

    @property
    def _pipe(self) -> float:
        return max(self.rates) * self.least_ns

    def _gain(self) -> float:
        if self.startup:
            return _STARTUP
        return 1 / _STARTUP if self.drains else _CYCLE[self.phase]

    def sent(self, which: int, delivered: int, now_ns: int) -> None:
        """Account for a segment that leaves now."""
        self.flying[which] = now_ns, delivered, self.delivered_ns or now_ns
        rate = max(self.rates) * self._gain()
        self.next_ns = now_ns + (round(1 / rate) if rate else 0)

    def acked(self, delivered: int, flight: int, now_ns: int) -> float:
        """Account for an ACK of all segments below a number; return the new window."""
        sent = self.flying.get(delivered - 1)
        self.flying = {which: each for which, each in self.flying.items() if which >= delivered}
        self.delivered_ns = now_ns
        if sent is not None:
            self._sample(*sent, delivered, now_ns)
        if self.drains and flight <= self._pipe:
            self.drains, self.phase_ns = False, now_ns
        if not self.startup and not self.drains and now_ns - self.phase_ns > self.least_ns:
            self.phase, self.phase_ns = (self.phase + 1) % len(_CYCLE), now_ns
        return max((_STARTUP if self.startup else 2.0) * self._pipe, _LEAST_WINDOW)

    def _sample(
        self, sent_ns: int, before: int, begun_ns: int, delivered: int, now_ns: int
    ) -> None:
        self.least_ns = min(self.least_ns, now_ns - sent_ns)
        rate = (delivered - before) / max(now_ns - begun_ns, 1)
        if before >= self.round_end:
            self.round_end = delivered
            self._ended_round()
            self.rates.append(rate)
        self.rates[-1] = max(self.rates[-1], rate)

    def _ended_round(self) -> None:
        if not self.startup:
            return
        grew = max(self.rates) >= 1.25 * self.best
        self.best = max(self.rates) if grew else self.best
        self.even_rounds = 0 if grew else self.even_rounds + 1
        if self.even_rounds >= 3:
            self.startup, self.drains = False, True

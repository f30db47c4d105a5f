"""A congestion control that learns: an environment of Gymnasium on the real kernel.

    env = twoway.gym.Control("quick/alone@line=20mbit-100ms,buffer=1bdp", interval_ms=50)

A connection's kernel asks at an ACK, and the guest's clock stands still until the policy has
answered: FIFOs lead from a guest, which runs in a thread, to this process (tcp_policy.c).
"""

import math
import os
import select
import shutil
import struct
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box
from numpy.typing import NDArray

from twoway.backends.backend import Progress
from twoway.backends.uml import Uml, run
from twoway.description.experiment import MOST_SEEDS
from twoway.description.point import Point
from twoway.description.reading import validate_document
from twoway.errors import RunError, SpecError
from twoway.guest.cache import built_guest
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.runs.run import run_experiment
from twoway.sweeps.evaluate import Evaluation, Job, point_for

# What an observation has: of the interval since the flow's last one, but for round trips, window
# and packets in flight.
OBSERVED = (
    "interval_s",
    "goodput_mbit",
    "rtt_ms",
    "min_rtt_ms",
    "window_packets",
    "in_flight_packets",
    "retransmitted_packets",
    "marked_packets",
)
_SOURCE = Path(__file__).with_name("tcp_policy.c")
# The folder of the FIFOs in the guest, and their names, as tcp_policy.c has them.
_IN_GUEST, _QUESTIONS, _ANSWERS = "/mnt/policy", "questions", "answers"
_QUESTION, _ANSWER = struct.Struct("=QQ7I4x"), struct.Struct("=QQQQ")
# Wall time after which a guest that waits for an answer counts as stuck.
_LONGEST_THOUGHT_S = 3600.0
# Time between two looks at whether the guest still lives.
_LOOK_S = 0.2

Array = NDArray[np.float64]


class _Question(NamedTuple):
    """`struct question` of tcp_policy.c."""

    time_us: int
    acked_bytes: int
    port: int
    window: int
    in_flight: int
    retransmitted: int
    marked: int
    rtt_us: int
    min_rtt_us: int


@dataclass(frozen=True)
class _Asking(Uml):
    """The backend `uml`, whose guest reaches a folder with two FIFOs."""

    fifos: Path = field(kw_only=True)

    def run(self, folder: Path, on_progress: Callable[[Progress], None]) -> None:
        """Boot the guest, and let it wait for answers."""
        shown = {_IN_GUEST: self.fifos}
        run(self.guest, folder, on_progress, readable=shown, stall_s=_LONGEST_THOUGHT_S)
        shutil.rmtree(folder / "uml", ignore_errors=True)


class _Episode:
    """A run in a thread, from its first question to its end.

    Attributes:
        flows: names of the flows that ask, by the receiver's port.
        metrics: as `twoway run` measures them, once the run has ended.
    """

    def __init__(self, asked: Mapping[str, Any], seed: int) -> None:
        guest = built_guest()
        found = validate_document("gym", {**asked, "seed": seed}, Evaluation)
        point = point_for(Job("gym", "", Uml(guest), 0), found)
        if point.experiment.kernel:
            raise SpecError([f"gym: kernel: must be absent, got {point.experiment.kernel}"])
        if point.experiment.interventions:
            raise SpecError(["gym: interventions: must be absent"])
        self.flows = {c.port: c.name for c in point.connections if c.congestion == "policy"}
        self.metrics: dict[str, float | None] = {}
        self._error: BaseException | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="twoway-gym-")
        fifos = Path(self._folder.name, "fifos")
        fifos.mkdir()
        for path in (fifos / _QUESTIONS, fifos / _ANSWERS):
            os.mkfifo(path)
            path.chmod(0o666)  # where root starts the guest, its user is not root
        fifos.chmod(0o755)  # the folder above admits its owner alone
        self._questions = os.open(fifos / _QUESTIONS, os.O_RDONLY | os.O_NONBLOCK)
        self._answers = os.open(fifos / _ANSWERS, os.O_RDWR)  # waits for no reader
        backend = _Asking(guest, fifos=fifos)
        self._thread = Thread(target=self._run, args=(point, backend), daemon=True)
        self._thread.start()

    def _run(self, point: Point, backend: Uml) -> None:
        try:
            folder = run_experiment(point, backend, Path(self._folder.name, "runs"), scratch=True)
            measured = compute(Analysis(folder)).metrics
            self.metrics = {name: each.value for name, each in measured.items()}
        except BaseException as error:  # noqa: BLE001 - raised in the thread that asks
            self._error = error

    def question(self) -> _Question | None:
        """Wait for the next question; None at the end of the run, whose error is raised."""
        while self._thread.is_alive():
            if select.select([self._questions], [], [], _LOOK_S)[0]:
                if data := os.read(self._questions, _QUESTION.size):
                    return _Question(*_QUESTION.unpack(data))
                self._thread.join()
        if self._error:
            raise self._error
        return None

    def answer(self, *numbers: int) -> None:
        """Answer with the numbers of `struct answer`, which lets the guest's clock move on."""
        os.write(self._answers, _ANSWER.pack(*numbers))

    def end(self) -> None:
        """Answer no more: the run goes on to its end with the window that it has."""
        self.answer(0, 0, 0, 0)
        self._thread.join()
        os.close(self._answers)
        os.close(self._questions)
        self._folder.cleanup()


def power(seen: Mapping[str, float]) -> float:
    """Return log(goodput) - log(round trip) / 4 of an interval; no goodput counts as 1 kbit/s."""
    return math.log(max(seen["goodput_mbit"], 1e-3)) - math.log(max(seen["rtt_ms"], 1e-3)) / 4


class Control(gymnasium.Env[Array, Array]):
    """The congestion control of an environment's flows.

    An action is a window, packets, and a rate of pacing, Mbit/s, 0 for none. `info["flow"]` names
    the flow that an observation is of, and that acts next. An episode ends, truncated, with the
    run: `info["metrics"]` then has what `twoway run` measures.

    Args:
        environment: an experiment's id or file, a row of a suite, or an experiment's fields; it
            and `changes` are as `environment` and `set` of `twoway evaluate`.
        interval_ms: time between two questions of a flow; 0: each ACK.
        think_ms: the policy's own time, charged: an action is in force so long after its question.
        reward: from an observation by name.
    """

    def __init__(
        self,
        environment: str | Mapping[str, Any],
        *,
        changes: Mapping[str, Any] | None = None,
        interval_ms: float = 50,
        think_ms: float = 0,
        reward: Callable[[Mapping[str, float]], float] = power,
    ) -> None:
        control = _SOURCE.read_text("utf-8")
        self._asked = {"environment": environment, "control": control, "set": changes or {}}
        self._interval_us, self._think_us = round(interval_ms * 1e3), round(think_ms * 1e3)
        self._reward = reward
        self._episode: _Episode | None = None
        self._last: dict[str, _Question] = {}
        self._flow = ""
        self.observation_space = Box(0, np.inf, (len(OBSERVED),), np.float64)
        self.action_space = Box(np.array([1.0, 0.0]), np.array([65535, 1e5]), dtype=np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin a run; its seed is `seed`, from 1, or drawn."""
        super().reset(seed=seed, options=options)
        self.close()
        drawn = int(self.np_random.integers(1, MOST_SEEDS)) if seed is None else seed
        self._episode = _Episode(self._asked, drawn)
        self._last = {}
        seen = self._look()
        if not seen:
            raise RunError("gym: no flow of the policy had an ACK")
        return np.array([*seen.values()]), {"flow": self._flow}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Act; return what the next question observes."""
        if not self._episode:
            raise ResetNeeded("step() before reset()")
        window, rate_mbit = map(float, action)
        at_us, think_us = self._last[self._flow].time_us, self._think_us
        self._episode.answer(
            at_us + think_us,
            at_us + max(think_us, self._interval_us),
            round(rate_mbit * 1e6 / 8),
            max(1, round(window)),
        )
        if seen := self._look():
            reward = self._reward(seen)
            return np.array([*seen.values()]), reward, False, False, {"flow": self._flow}
        ended = {"flow": self._flow, "metrics": self._episode.metrics}
        return np.zeros(len(OBSERVED)), 0.0, False, True, ended

    def _look(self) -> dict[str, float]:
        """Wait for a question; return its observation by name, empty at the end of the run."""
        assert self._episode
        now = self._episode.question()
        if now is None:
            return {}
        self._flow = self._episode.flows.get(now.port, f"port {now.port}")
        before = self._last.get(self._flow, now)
        self._last[self._flow] = now
        interval_us = now.time_us - before.time_us
        values = (
            interval_us / 1e6,
            (now.acked_bytes - before.acked_bytes) * 8 / max(interval_us, 1),
            now.rtt_us / 1e3,
            now.min_rtt_us / 1e3,
            now.window,
            now.in_flight,
            now.retransmitted - before.retransmitted,
            now.marked - before.marked,
        )
        return dict(zip(OBSERVED, map(float, values), strict=True))

    def close(self) -> None:
        """End the episode; the guest's run goes on to its end, without questions."""
        if self._episode:
            self._episode.end()
        self._episode = None

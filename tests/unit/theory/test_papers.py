"""The closed forms behind predictions, against the model and against the files."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from twoway.paths import PROFILES, experiment_files
from twoway.theory.kalampoukas import cycle
from twoway.theory.packet_model import Sender, simulate


def _load(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


def _senders(name: str) -> tuple[Sender, Sender]:
    """Return the two nodes of an experiment, from its file and its profile."""
    experiment = _load(experiment_files()[name])
    directions = _load(PROFILES / f"{experiment['profile']}.yml")["directions"]
    mtu = experiment["stack"]["mtu_bytes"]
    senders = []
    for flow, direction in zip(experiment["flows"], ("forward", "reverse"), strict=True):
        link = directions[direction]
        rate = Fraction(str(link["rate_mbit"])) * 1_000_000
        header = 14 + link["overhead_bytes"]
        senders.append(
            Sender(
                window=flow["window_packets"],
                data=(mtu + header) * 8 / rate,
                ack=(40 + header) * 8 / rate,
                delay=Fraction(str(link["delay_ms"])) / 1000,
                start=Fraction(str(flow.get("start_s", 0))),
            )
        )
    return senders[0], senders[1]


EXPERIMENTS = (
    "kalampoukas-3.2",
    "kalampoukas-5.2",
    "kalampoukas-5.2-staggered",
    "kalampoukas-5.3",
    "zhang-fig8",
    "zhang-fig9",
)


def _measured_cycle(one: Sender, two: Sender) -> list[Fraction]:
    """Return each node's mean cycle in the model, an exact fraction over pairs of cycles."""
    period = cycle(one, two)
    outcomes = simulate((one, two), (20 * period, 60 * period))
    cycles = []
    for outcome in outcomes:
        starts = outcome.cluster_starts
        count = (len(starts) - 1) // 2 * 2
        cycles.append((starts[count] - starts[0]) / count)
    return cycles


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_model_has_the_cycle_of_the_closed_form(name: str) -> None:
    """The model of each experiment repeats with the closed form's cycle, as an exact fraction."""
    one, two = _senders(name)
    assert _measured_cycle(one, two) == [cycle(one, two)] * 2


@pytest.mark.parametrize(
    ("name", "forward", "reverse"),
    [
        ("kalampoukas-5.2", 13, 13),
        ("kalampoukas-5.2-staggered", 16, 16),
        ("zhang-fig8", 55, 23),
        ("zhang-fig9", 23, 23),
    ],
)
def test_model_reaches_the_queues_that_experiments_expect(
    name: str, forward: int, reverse: int
) -> None:
    """The model's queue peaks are the papers' to within one packet."""
    one, two = _senders(name)
    period = cycle(one, two)
    outcomes = simulate((one, two), (20 * period, 40 * period))
    assert abs(outcomes[0].queue_peak - forward) <= 1
    assert abs(outcomes[1].queue_peak - reverse) <= 1


@settings(max_examples=60, deadline=None)
@given(
    window=st.integers(2, 40),
    delay=st.integers(1, 30),
    ack=st.sampled_from([Fraction(1, 200), Fraction(1, 50)]),
)
def test_symmetric_form_holds_everywhere(window: int, delay: int, ack: Fraction) -> None:
    """For equal windows that fill the pipe, the model's cycle is exactly the closed form's."""
    assume(window > delay + 1)  # otherwise the paper's condition for ACK compression (2.1) fails
    sender = Sender(window, Fraction(1), ack, Fraction(delay) + Fraction(1, 7))
    assert _measured_cycle(sender, sender) == [cycle(sender, sender)] * 2

"""Slow start up to the receivers' windows, on channels that end at a constant rate.

After Kalampoukas et al. (1998), sections 2.2 and 5.2: once windows and rates are constant,
everything is as with fixed windows from the start. Queues are not predicted: they depend on the
phase of the two connections at the end of slow start.
"""

from dataclasses import replace
from itertools import pairwise
from statistics import median

from twoway.links.dtm import Channel
from twoway.theory.network import Bottleneck, Setup
from twoway.theory.predictions import kalampoukas

_ANY_PHASE = ("efficiency", "throughput", "goodput", "utilisation", "busy_period_cycle")


def predict(setup: Setup) -> dict[str, float]:
    """Predict efficiencies, cycles and busy periods after the start-up.

    Raises: ValueError with a sentence if the theory does not cover the setup.
    """
    steady = _steady(setup)
    values = _any_phase(kalampoukas.predict(steady))
    for connection in steady.connections:
        whole_window = float(connection.window_packets or 0)
        values[f"busy_period_segments.{connection.direction}"] = whole_window
        values[f"busy_period_growth.{connection.direction}"] = _growth(whole_window)
    return values


def printed_values(setup: Setup) -> dict[str, float]:
    """Compute the paper's formulas for the time after the start-up."""
    return _any_phase(kalampoukas.printed_values(_steady(setup)))


def _growth(window: float) -> float:
    """Compute the growth of busy periods: each ACK of slow start releases two segments."""
    periods = [1.0]
    while periods[-1] < window:
        periods.append(min(2 * periods[-1], window))
    return median(later / earlier for earlier, later in pairwise(periods))


def _any_phase(values: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if name.split(".")[0] in _ANY_PHASE}


def _steady(setup: Setup) -> Setup:
    """Replace windows by the receivers', and rates by the final ones."""
    window = setup.receive_window_packets
    if window is None:
        raise ValueError("it needs receive_window_packets, where slow start ends")
    constant = {"window_packets": window}
    return replace(
        setup,
        links={name: _last_rate(link) for name, link in setup.links.items()},
        connections=tuple(c.model_copy(update=constant) for c in setup.connections),
    )


def _last_rate(link: Bottleneck) -> Bottleneck:
    channel = link.elements.find(Channel)
    if not channel or not channel.trace:
        return link
    last = channel.model_copy(update={"slots": channel.trace.steps[-1].slots, "trace": None})
    changed = link.with_fields(dtm=last)
    slower = link.rate_bit / changed.rate_bit
    return replace(changed, data_s=link.data_s * slower, ack_s=link.ack_s * slower)

"""Figures of DTM channels: rate and slots over time."""

import numpy as np
from capture_analysis.pictures.figure import Figure, Line

from twoway.measure import channel
from twoway.measure.analysis import Analysis
from twoway.measure.queue_view import QueueView


def channel_figures(analysis: Analysis) -> list[Figure]:
    """Draw rate and slots of each DTM channel with the rate allocator."""
    figures = []
    for direction, view in analysis.queues.items():
        if view.slots and view.slots.options.rate:
            figures += _rate_figures(analysis, direction, view, view.slots)
    return figures


def _rate_figures(
    analysis: Analysis, direction: str, view: QueueView, slots: channel.Slots
) -> list[Figure]:
    stop_ns = analysis.run.stop_ns
    made = channel.estimates(view.queue, slots, view.passed, stop_ns)
    x = analysis.run.seconds(made.time_ns)
    changes = slots.changes(slots.start_ns, stop_ns)
    times = np.concatenate(([slots.start_ns], changes, [stop_ns]))
    held = slots.count_at(times).astype(np.float64)
    options = slots.options
    slot_mbit = options.slot_bit / 1e6
    rate = options.rate
    assert rate
    wanted = made.estimate_bit / options.slot_bit + rate.margin_slots + rate.corridor_slots / 2
    return [
        Figure(
            f"rate-{direction}",
            f"Rate of the traffic and capacity of {direction}",
            f"The arrivals in each {rate.sample_ms:g} ms, the estimate that follows it, and "
            "the capacity of the slots that the channel had.",
            "time, s",
            "Mbit/s",
            [
                Line("measured", x, made.measured_bit / 1e6, "steps", 0),
                Line("estimate", x, made.estimate_bit / 1e6, "line", 1),
                Line("capacity", analysis.run.seconds(times), held * slot_mbit, "steps", 2),
            ],
        ),
        Figure(
            f"slots-{direction}",
            f"Slots of {direction}",
            f"Slots of {options.slot_kbit} kbit/s, and the slots that the estimate would "
            "ask for at each sample: estimate, margin and half the corridor, before "
            "rounding. They change at most "
            f"once in {options.change_s:g} s, and not while the estimate stays in its corridor.",
            "time, s",
            "slots",
            [
                Line("wanted", x, wanted, "line", 1),
                Line("allocated", analysis.run.seconds(times), held, "steps", 2),
            ],
        ),
    ]

"""The time series of a run's connections, as its page draws them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from capture_analysis.columns import IntArray
from capture_analysis.pictures.figure import FloatArray

from twoway.contract.network import Connection
from twoway.errors import UsageError
from twoway.manifest import Manifest
from twoway.measure.analysis import Analysis
from twoway.measure.connection_view import ConnectionView
from twoway.measure.metrics.fairness_by_second import jain_by_second
from twoway.messages import suggest
from twoway.report.figures import goodput_edges_ns, goodput_mbit


@dataclass(frozen=True)
class ConnectionSeries:
    """A connection's time series.

    Attributes:
        connection: the connection.
        goodput_mbit: shape (k,), new payload at the receiver in each interval, Mbit/s.
        sampled_ns: shape (n,), times of the samples of the sender's TCP_INFO, ns on the plan's
            clock.
        cwnd: shape (n,), congestion window, segments.
        ssthresh: shape (n,), slow start threshold, segments; -1: infinite.
        smoothed_rtt_us: shape (n,), the kernel's estimate.
    """

    connection: Connection
    goodput_mbit: FloatArray
    sampled_ns: IntArray
    cwnd: IntArray
    ssthresh: IntArray
    smoothed_rtt_us: IntArray


@dataclass(frozen=True)
class RunSeries:
    """The series of all connections of a run.

    Attributes:
        manifest: the run's manifest.
        edges_ns: shape (k+1,), ends of the intervals of goodput, ns on the plan's clock.
        connections: their series, in the order of the experiment's file.
    """

    manifest: Manifest
    edges_ns: IntArray
    connections: tuple[ConnectionSeries, ...]


def run_series(analysis: Analysis) -> RunSeries:
    """Compute the series of a run.

    Raises: AnalysisError if the run cannot be analysed.
    """
    edges_ns = goodput_edges_ns(analysis)
    connections = tuple(_series(analysis, view, edges_ns) for view in analysis.connections.values())
    return RunSeries(analysis.run.manifest, edges_ns, connections)


def seconds_of(analysis: Analysis) -> dict[str, tuple[FloatArray, FloatArray]]:
    """List the series by second: times and values by name, goodputs in Mbit/s."""
    seconds = analysis.seconds
    begin_s, jain = analysis.run.seconds(seconds.begin_ns), jain_by_second(seconds)
    rows = zip(seconds.connections, seconds.goodput_bit, seconds.sending, strict=True)
    known = np.isfinite(jain)
    return {
        **{
            f"goodput_by_second.{each.name}": (begin_s[sending], bit[sending] / 1e6)
            for each, bit, sending in rows
        },
        "jain_index": (begin_s[known], jain[known]),
    }


class Tabulated(NamedTuple):
    """One quantity of a connection over time, in a unit for people.

    Attributes:
        connection: the connection's name.
        quantity: goodput, cwnd, ssthresh or smoothed_rtt.
        unit: unit of the values.
        time_s: shape (n,), s after the start of traffic; goodput is at its interval's start.
        values: shape (n,).
    """

    connection: str
    quantity: str
    unit: str
    time_s: FloatArray
    values: FloatArray | IntArray


def list_quantities(run: RunSeries) -> Iterator[Tabulated]:
    """List each quantity of each connection."""
    start_ns = run.manifest.clock.start_ns
    for series in run.connections:
        known = series.ssthresh >= 0
        for quantity, unit, time_ns, values in (
            ("goodput", "Mbit/s", run.edges_ns[:-1], series.goodput_mbit),
            ("cwnd", "segments", series.sampled_ns, series.cwnd),
            ("ssthresh", "segments", series.sampled_ns[known], series.ssthresh[known]),
            ("smoothed_rtt", "ms", series.sampled_ns, series.smoothed_rtt_us / 1e3),
        ):
            time_s = (time_ns - start_ns) / 1e9
            yield Tabulated(series.connection.name, quantity, unit, time_s, values)


def named_series(analysis: Analysis, name: str) -> tuple[str, FloatArray, FloatArray | IntArray]:
    """Find a series by name: its unit, times in s after the start of traffic, and values.

    Args:
        analysis: the run.
        name: QUANTITY.CONNECTION with goodput, goodput_by_second, cwnd, ssthresh or smoothed_rtt;
            queue.QUEUE; or jain_index.

    Raises: UsageError with the names that exist.
    """
    quantity, _, subject = name.partition(".")
    if quantity == "queue" and subject in analysis.queues:
        packets = analysis.queues[subject].all_packets
        return "packets", analysis.run.seconds(packets.time_ns), packets.packets
    by_second = seconds_of(analysis)
    if name in by_second:
        return ("1" if name == "jain_index" else "Mbit/s", *by_second[name])
    known = [*by_second, *(f"queue.{queue}" for queue in analysis.queues)]
    for row in list_quantities(run_series(analysis)):
        known.append(f"{row.quantity}.{row.connection}")
        if known[-1] == name:
            return row.unit, row.time_s, row.values
    raise UsageError(
        f"{name:.80}: no such series{suggest(name, known)}", f"there are {', '.join(known)}"
    )


def _series(analysis: Analysis, view: ConnectionView, edges_ns: IntArray) -> ConnectionSeries:
    sampled_ns, samples = analysis.samples_of(view.connection)
    return ConnectionSeries(
        connection=view.connection,
        goodput_mbit=goodput_mbit(view, edges_ns),
        sampled_ns=sampled_ns,
        cwnd=samples["cwnd"],
        ssthresh=samples["ssthresh"],
        smoothed_rtt_us=samples["rtt_us"],
    )

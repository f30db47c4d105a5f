"""Every metric of the run made by hand."""

import dataclasses
import statistics
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.synthetic_run import FORWARD, REVERSE, Crossing, prediction, write_run

from twoway.contract.judge import Verdict
from twoway.measure import document
from twoway.measure.analysis import Analysis
from twoway.measure.registry import all_estimators, metric_names

WAYS, NAMES = ("forward", "reverse"), ("first", "second")


def undefined(*metrics: str, of: Sequence[str]) -> dict[str, None]:
    """Return metrics without a value."""
    return dict.fromkeys(f"{metric}.{each}" for metric in metrics for each in of)


# A window of 20000 us; times are in us; a segment takes 500, an ACK 50.
QUEUES = {
    **undefined(
        *("marks", "policed", "medium_busy", "plateau_high", "plateau_low", "queue_epoch_period"),
        of=WAYS,
    ),
    # Busy periods in reverse have 5 segments and 1.
    **undefined("busy_period_growth", "busy_period_cycle", "oscillation_period", of=WAYS[1:]),
    "queue_ack_bunch_max.forward": 1,
    "queue_ack_bunch_max.reverse": 3,
    # Peaks of data in busy periods: 4, 4 and 1 packets forward, 5 and 1 in reverse.
    "busy_peak_high.forward": 4,
    "busy_peak_low.forward": 2.5,
    "busy_peak_high.reverse": 5,
    "busy_peak_low.reverse": 1,
    "busy_period_growth.forward": 5 / 4,  # periods of 4, 5 and 1 segments
    "utilisation.forward": 5850 / 20000,  # 11 segments and 7 ACKs
    "utilisation_data.forward": 5500 / 20000,
    "queue_peak.forward": 4,
    "queue_peak_data.forward": 4,
    # Two bursts of four segments, three single ones, and 7 ACKs that do not wait.
    "queue_mean.forward": (5000 + 4850 + 3 * 500 + 7 * 50) / 20000,
    # Sojourn times: seven ACKs of 0.05 ms; data of 0.5 five times, 1 twice, 1.45, 1.5, 1.9, 2.
    "sojourn_median.forward": 0.5,
    "sojourn_p95.forward": 1.915,
    "sojourn_p99.forward": 1.983,
    # Sojourn times: eight packets of 0.05 ms, three of 0.5; 1, 1.05, 1.5 twice, 1.95, 2, 2.5.
    "sojourn_median.reverse": 0.5,
    "sojourn_p95.reverse": 2.075,
    "sojourn_p99.reverse": 2.415,
    "busy_periods.forward": 3,  # from segments 1, 6 and 10; the period from 11 is the last
    "busy_period_segments.forward": 4,  # periods of 4, 5 and 1
    "busy_period_cycle.forward": 0.0065,  # two cycles from 10500 to 23500 us
    "drops_data.forward": 1,
    "drops_ack.forward": 0,
    "utilisation_data.reverse": 3500 / 20000,
    "idle_periods.forward": 10,
    "idle_period_mean.forward": 0.001165,  # 14150 us, less 2500 that the window's end cuts
    "idle_period_max.forward": 0.003,
    "oscillation_period.forward": pytest.approx(0.00495, abs=20e-3 / 65536),  # from burst to burst
    "queue_epochs.forward": 1,
    "epoch_drops.forward": 1,
    "epoch_drops_ack.forward": 0,
    "epoch_drops_half_gap.forward": 1,
    "utilisation.reverse": 4050 / 20000,  # 7 segments, 10 ACKs and a FIN
    "queue_peak.reverse": 5,
    "queue_peak_data.reverse": 5,
    # A burst of five, three ACKs behind it, and single packets.
    "queue_mean.reverse": (7500 + 1950 + 1500 + 1050 + 2 * 500 + 8 * 50) / 20000,
    "busy_periods.reverse": 2,  # from segments 1 and 6
    "busy_period_segments.reverse": 3,  # periods of 5 and 1
    "drops_data.reverse": 0,
    "drops_ack.reverse": 1,
    "idle_periods.reverse": 10,
    "idle_period_mean.reverse": 0.00136,  # 15950 us, less 1400 and 950 at the window's ends
    "idle_period_max.reverse": 0.0035,
    "queue_epochs.reverse": 1,
    "epoch_drops.reverse": 1,
    "epoch_drops_ack.reverse": 1,
    "epoch_drops_half_gap.reverse": 1,
}
RUN = {
    **dict.fromkeys(("completion_time_median", "completion_time_p95", "transfers_complete")),
    "throughput_sum": 2.2 + 1.4,
    "queue_peak_ratio": 4 / 5,
    "window_correlation_same_way": None,  # one connection in each direction
    "congestion_epochs": 1,
    "drops_per_epoch": 1,
    "single_victim_epochs": 1,
    "alternating_victims": None,
    "jain_index": pytest.approx(3.24**2 / (2 * (1.98**2 + 1.26**2))),
    "epoch_period": None,
    "dropped_data_share": 0.5,
    "both_busy": 0.04,
    "neither_busy": 0.545,  # 1 - 5850/20000 - 4050/20000 + 0.04
    "synchronisation": None,  # no queue in some tenths of the window
    "synchronisation_error": None,
    **dict.fromkeys(("jain_index_median", "jain_index_least")),
}
BY_SECOND = ("goodput_least", "goodput_most", "share_least", "convergence_time")
OF_LINKS = (
    *("link_loss_burst", "link_loss_deviation", "link_loss_burst_deviation"),
    *("link_jitter", "link_overtaking", "link_copies"),
)
CONNECTIONS = {
    # Windows of 20 ms have no whole second, and no whole cycle. Their data is unlimited.
    **undefined(
        *("completion_time", "throughput_dip", "window_growth", *BY_SECOND),
        *("sawtooth_period", "sawtooth_efficiency"),
        of=NAMES,
    ),
    **undefined("first_loss_window", "compression_factor", of=NAMES[1:]),
    # The links of this run lose no packets.
    **{f"link_loss.{name}": 0 for name in NAMES},
    **undefined(*OF_LINKS, of=NAMES),
    "congestion_window_max.first": 5,
    "congestion_window_max.second": 5,
    # The pipe holds four packets, 2 ms of 0.5 ms each: three are over 60 %, and four over 90 %.
    **{f"flight_time_{share}.first": 0 for share in (60, 80, 90)},
    **{f"flight_time_{share}.second": 0.0014 for share in (60, 80, 90)},
    "first_loss_window.first": 5,  # segments 1 to 5
    "goodput.first": 1.98,  # 11 segments of 450 bytes; the dropped one counts when it arrives
    "throughput.first": 2.2,  # 11 segments of 500 bytes
    "queued_mean.first": (5000 + 4850 + 3 * 500) / 20000,  # as for the queue, minus the 7 ACKs
    "efficiency.first": 0.275,  # 1.98 of 7.2 Mbit/s
    "window_peak.first": 5,
    "ack_to_data.first": 1,
    "ack_spacing_ratio.first": 1,
    "acks_compressed.first": 3 / 9,  # 50/500 twice, and 2450/3450
    "ack_bunch_mean.first": 10 / 8,
    "ack_bunch_max.first": 3,
    "ack_bunch_max_sent.first": 1,
    "compression_factor.first": 10,
    "compression_factor_bound.first": 10,
    "acks_lost.first": 1,
    "clustering.first": 0.7,  # the share of ten packets that follow another
    "cluster_mean.first": 10 / 3,
    "effective_pipe.first": (1000 + 1485) / 500,
    "epoch_losses.first": 1,
    "goodput.second": 1.26,  # 7 segments of 450 bytes
    "throughput.second": 1.4,
    "queued_mean.second": (7500 + 2 * 500) / 20000,
    "efficiency.second": 0.175,
    "window_peak.second": 5,
    "ack_to_data.second": 1,
    "ack_spacing_ratio.second": 1,
    "acks_compressed.second": 0,
    "ack_bunch_mean.second": 1,
    "ack_bunch_max.second": 1,
    "ack_bunch_max_sent.second": 1,
    "compression_factor_bound.second": 10,
    "acks_lost.second": 0,
    "clustering.second": 4 / 6,
    "cluster_mean.second": 6 / 2,
    "effective_pipe.second": (1000 + 1050) / 500,
    "epoch_losses.second": 0,
    # Round trips are 4.95, 5, 5.05, 2.55 and 2.55 ms; the ACK of the retransmission gives none.
    # Those of `second` are 2.55 three times, 3.05, 3.55, 4.05 and 4.55.
    "rtt_min.first": 2.55,
    "rtt_median.first": 4.95,
    "rtt_p95.first": 5.04,
    "rtt_p99.first": 5.048,
    "retransmissions.first": 1,
    "retransmitted.first": 1 / 12,  # segments 1 to 11 were sent, one of them twice
    "retransmissions_needless.first": 0,
    "rtt_min.second": 2.55,
    "rtt_median.second": 3.05,
    "rtt_p95.second": 4.4,
    "rtt_p99.second": 4.52,
    "retransmissions.second": 0,
    "retransmitted.second": 0,
    "retransmissions_needless.second": 0,
    **{f"smoothed_rtt_{q}.{c}": 2.5 for q in ("median", "p95", "p99") for c in NAMES},
}


def computed(folder: Path) -> dict[str, Any]:
    """Return the run's metrics.json."""
    return document.compute(Analysis(folder)).model_dump()


def values(folder: Path) -> dict[str, float | None]:
    """Return metric names and values."""
    return {name: row["value"] for name, row in computed(folder)["metrics"].items()}


def test_every_metric(tmp_path: Path) -> None:
    """Drops, compression, queues and throughput follow exactly from the packets' times."""
    got = values(write_run(tmp_path))
    levels = counted_levels()
    assert got.pop("queue_correlation") == pytest.approx(statistics.correlation(*levels), abs=1e-12)
    busy = [[min(level, 1) for level in counted] for counted in levels]
    assert got.pop("pendulum_index") == pytest.approx(statistics.correlation(*busy), abs=1e-12)
    bottleneck = [got.pop(f"bottleneck_time.{name}") for name in ("forward", "reverse")]
    assert bottleneck == counted_bottleneck()
    assert got.pop("bottleneck_changes") == pytest.approx(counted_changes())
    for name, counted in zip(("forward", "reverse"), levels, strict=True):
        assert got.pop(f"queue_p95.{name}") == sorted(counted)[len(counted) * 95 // 100 - 1]
    del_measured_elsewhere(got)
    assert got == approximately(RUN | QUEUES | CONNECTIONS)


def counted_levels() -> list[list[int]]:
    """Count the two queues' lengths in each microsecond of the window."""
    return [
        [
            sum(c.entered_us <= now < c.left_us for c in table if c.left_us is not None)
            for now in range(10_000, 30_000)
        ]
        for table in (FORWARD, REVERSE)
    ]


def approximately(expected: dict[str, Any]) -> Any:
    """Compare values up to the order of additions; approximate values stay as they are."""
    return {
        name: pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
        for name, value in expected.items()
    }


def last_to_empty() -> list[int]:
    """Return the last queue to run empty for each microsecond of the window, or -1."""
    found = []
    for now in range(10_000, 30_000):
        empty = [
            max([now] + [c.left_us for c in table if c.entered_us <= now and c.left_us is not None])
            for table in (FORWARD, REVERSE)
        ]
        found.append(-1 if empty[0] == empty[1] else int(empty[1] > empty[0]))
    return found


def counted_bottleneck() -> list[float]:
    """Return each queue's share of the microseconds in which it is the last to run empty."""
    last = last_to_empty()
    return [last.count(queue) / len(last) for queue in (0, 1)]


def counted_changes() -> float:
    """Count changes of the last queue to run empty, per second with such a queue."""
    last = [queue for queue in last_to_empty() if queue >= 0]
    return sum(a != b for a, b in pairwise(last)) / (len(last) / 1e6)


def del_measured_elsewhere(got: dict[str, float | None]) -> None:
    """Remove metrics that are tested in test_congestion_window.py, and undefined here."""
    for name in ("window_correlation_opposite", *(f"clusters_per_window.{c}" for c in NAMES)):
        assert got.pop(name) is not None


def test_every_value_is_as_defined(tmp_path: Path) -> None:
    """Each metric has its definition's unit, and a value in its definition's range."""
    there = {each.name: each for made in all_estimators() for each in made.definitions}
    for name, row in computed(write_run(tmp_path))["metrics"].items():
        definition = there[name.split(".")[0]]
        assert row["unit"] == definition.unit
        assert row["value"] is None or definition.least <= row["value"] <= definition.most, name


def test_metrics_document_names_its_run(tmp_path: Path) -> None:
    """The document names experiment, run, backend and kernel; its only verdicts are fidelity's."""
    document = computed(write_run(tmp_path, [prediction("drops_data.forward", 2)]))
    assert document["experiment"] == "by-hand"
    assert document["run"] == "20000101-000030-000000"
    assert document["backend"] == "uml"
    assert document["clock_source"] == "virtual"
    assert document["kernel"] == "6.12.0"
    assert [row["verdict"] for row in document["fidelity"]] == [Verdict.PASS] * 17
    assert document["metrics"]["goodput.first"] == {"value": 1.98, "unit": "Mbit/s", "error": 0}


def test_statements_measure_nothing(tmp_path: Path) -> None:
    """metrics.json does not depend on the statements about the run."""
    said = write_run(tmp_path / "said", [prediction("queue_peak.forward", 9)])
    assert computed(said) == computed(write_run(tmp_path / "silent"))


def test_names_are_those_measured(tmp_path: Path) -> None:
    """The names against which experiments are checked are exactly the metrics of a run."""
    document = computed(write_run(tmp_path))
    expected = metric_names(("forward", "reverse"), ("first", "second"))
    assert sorted(document["metrics"]) == sorted(expected)


# Metrics of a connection that need both data and ACKs, a loss, or an effect of a link.
UNDEFINED = {
    f"{metric}.first"
    for metric in (
        *("throughput_dip", "window_growth", "first_loss_window", "completion_time", *OF_LINKS),
        *("flight_time_60", "flight_time_80", "flight_time_90", "sawtooth_period"),
        *("sawtooth_efficiency", "window_peak", "compression_factor", "compression_factor_bound"),
        *("effective_pipe", "rtt_min", "rtt_median", "rtt_p95", "rtt_p99", *BY_SECOND),
    )
}


def test_connection_without_acks(tmp_path: Path) -> None:
    """A connection whose sink never answers has metrics of data and none of ACKs."""
    folder = write_run(tmp_path, reverse=[c for c in REVERSE if c.connection == "second"])
    got = values(folder)
    assert got["goodput.first"] == 1.98
    assert [got[f"{name}.first"] for name in ("ack_to_data", "ack_bunch_max")] == [0, 0]
    assert got["ack_bunch_max_sent.first"] == 0
    undefined = {name for name, value in got.items() if value is None and name.endswith("first")}
    names = ("ack_spacing_ratio", "acks_compressed", "ack_bunch_mean")
    assert undefined == UNDEFINED | {f"{name}.first" for name in names}


def test_factor_is_a_median(tmp_path: Path) -> None:
    """Two gaps of 500 us compressed to 50 and 100 have factors of 10 and 5; the metric is 7.5."""
    late = [dataclasses.replace(c, left_us=14_100) if c.left_us == 14_050 else c for c in REVERSE]
    assert values(write_run(tmp_path, reverse=late))["compression_factor.first"] == 7.5


def test_connection_without_data(tmp_path: Path) -> None:
    """A connection that sends nothing has a goodput of zero, and no metrics of data."""
    folder = write_run(tmp_path, forward=[c for c in FORWARD if c.connection == "second"])
    got = values(folder)
    assert got["goodput.first"] == 0
    assert got["jain_index"] == 0.5
    undefined = {name for name, value in got.items() if value is None and name.endswith("first")}
    names = [
        *("clusters_per_window", "efficiency", "ack_to_data", "retransmitted", "clustering"),
        *("cluster_mean", "epoch_losses"),
    ]
    assert undefined == UNDEFINED | {f"{name}.first" for name in names}


def test_queue_with_no_packets(tmp_path: Path) -> None:
    """A queue without packets is idle and empty, and has no busy periods."""
    first = [c for c in FORWARD if c.connection == "first"]
    got = values(write_run(tmp_path, forward=first, reverse=[]))
    idle = (
        *("utilisation", "utilisation_data", "queue_peak", "queue_peak_data", "queue_mean"),
        *("queue_p95", "busy_periods", "drops_data", "drops_ack", "idle_periods", "queue_epochs"),
        *("queue_ack_bunch_max", "bottleneck_time", "idle_period_max"),
    )
    none = (
        *("busy_peak_high", "busy_peak_low", "busy_period_growth", "marks", "policed"),
        *("medium_busy", "busy_period_segments", "busy_period_cycle", "idle_period_mean"),
        *("sojourn_median", "sojourn_p95", "sojourn_p99", "oscillation_period", "epoch_drops"),
        *("plateau_high", "plateau_low", "epoch_drops_ack", "epoch_drops_half_gap"),
    )
    found = {name: value for name, value in got.items() if name.endswith("reverse")}
    assert found == {
        **{f"{name}.reverse": 0 for name in idle},
        **undefined(*none, "queue_epoch_period", of=WAYS[1:]),
    }


def test_drops_after_traffic_do_not_count(tmp_path: Path) -> None:
    """A drop after the end of traffic does not count for the run."""
    late = Crossing("first", "data", 13, 30_100, None)
    got = values(write_run(tmp_path, forward=[*FORWARD[:-1], late, FORWARD[-1]]))
    del got["queue_correlation"], got["pendulum_index"]
    for name in ("forward", "reverse"):
        del got[f"bottleneck_time.{name}"], got[f"queue_p95.{name}"]
    del got["bottleneck_changes"]
    del_measured_elsewhere(got)
    assert got == approximately(RUN | QUEUES | CONNECTIONS)

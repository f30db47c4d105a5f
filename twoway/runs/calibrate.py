"""Calibration: the error floor of each link profile.

A one-way connection sends one full segment at a time, at 90 % of the link's rate. Each packet
should be sent on schedule, and leave the bottleneck at the time that rate and size give.
"""

from pathlib import Path
from typing import Any

import numpy as np

from twoway.backends.backend import Backend
from twoway.contract.judge import Verdict, mark_verdict
from twoway.contract.network import ETHERNET_BYTES, START_NS
from twoway.contract.writing import chown_like_parent, write_json
from twoway.description.point import make_point
from twoway.description.reading import ExperimentSource, load_profile
from twoway.description.referred_files import find_profile
from twoway.errors import SpecError
from twoway.measure.analysis import Analysis
from twoway.measure.registry import metric_names
from twoway.messages import say
from twoway.paths import EXPERIMENTS, PROFILES
from twoway.runs.run import run_watched

# Small enough that no profile's transmission time reaches the smallest RTO, 200 ms.
_MTU_BYTES = 576
_PACKETS = 2000
_LOAD = 0.9
# netem cuts each transmission time to whole nanoseconds.
_ERROR_BOUND_NS = 1


def calibrate_profiles(backend: Backend, names: list[str], results: Path) -> list[dict[str, Any]]:
    """Calibrate link profiles, all without names, and write results/calibration/calibration.json.

    Returns: one row per profile and direction.
    """
    rows: list[dict[str, Any]] = []
    for name in names or sorted(p.stem for p in PROFILES.glob("*.yml")):
        rows += _calibrate(backend, name, results)
    path = results / "calibration/calibration.json"
    write_json(path, rows)
    chown_like_parent(path)
    return rows


def _calibrate(backend: Backend, named: str, results: Path) -> list[dict[str, Any]]:
    # The profile is looked up as if an experiment beside its file, or in `experiments/`, named it.
    name, beside = named, EXPERIMENTS / "calibrate.yml"
    if named.endswith(".yml"):
        name, beside = Path(named).stem, Path(named).with_name("calibrate.yml")
        if not Path(named).is_file():
            raise SpecError([f"{named}: no such profile"])
    path = find_profile(name, beside)
    profile = load_profile(path)
    if set(profile.directions) != {"forward", "reverse"}:
        got = ", ".join(profile.directions)
        raise SpecError([f"{path}: calibration takes directions forward and reverse, got {got}"])
    rows = []
    for direction, (source, sink) in {"forward": ("h1", "h2"), "reverse": ("h2", "h1")}.items():
        link = profile.directions[direction]
        # A flow's rate is that of IP packets; the link's rate includes its overhead.
        share = _MTU_BYTES / link.link_bytes(_MTU_BYTES + ETHERNET_BYTES)
        rate_mbit = _LOAD * link.start_mbit * share
        interval_ns = round(_MTU_BYTES * 8e3 / rate_mbit)
        duration_s = _PACKETS * interval_ns / 1e9
        fields = {
            "schema": 1,
            "title": f"Calibration of {name}, {direction}",
            "summary": "A constant-rate stream at 90 % of the link's rate.",
            "topology": {"name": "two_node"},
            "profile": name,
            "stack": {"mtu_bytes": _MTU_BYTES},
            "flows": [
                {
                    "name": "probe",
                    "from": source,
                    "to": sink,
                    "congestion": "fixed",
                    "window_packets": 4000,
                    "rate_mbit": rate_mbit,
                }
            ],
            "duration_s": duration_s,
            "warm_up_s": 0,
            "observe": {"tcp_info_ms": duration_s * 10},
        }
        probe = ExperimentSource(f"{name}-{direction}", f"calibrate {name}", beside, fields)
        point = make_point(probe, probe.as_written, metric_names)
        rows.append(
            {"profile": name, "direction": direction}
            | _measure(run_watched(point, backend, results / "calibration"), direction, interval_ns)
        )
        _show(rows[-1])
    return rows


def _measure(folder: Path, direction: str, interval_ns: int) -> dict[str, Any]:
    analysis = Analysis(folder)
    error_ns = analysis.queues[direction].error_ns
    sent = analysis.connections["probe"].sent
    data = sent.where((sent.payload_bytes > 1) & (sent.time_ns >= START_NS))
    schedule = START_NS + interval_ns * np.arange(len(data))
    lateness_ns = data.time_ns - schedule
    worst = int(np.abs(error_ns).max(initial=0))
    return {
        "packets": len(data),
        "departure_error_worst_ns": worst,
        "departure_error_rms_ns": round(float(np.sqrt(np.mean(error_ns**2.0))), 3),
        "timer_lateness_worst_ns": int(lateness_ns.max(initial=0)),
        "timer_lateness_spread_ns": int(np.ptp(lateness_ns)) if len(data) else 0,
        "pass": worst <= _ERROR_BOUND_NS and len(data) == _PACKETS,
    }


def _show(row: dict[str, Any]) -> None:
    text = (
        f"{row['profile']:<16} {row['direction']:<8} {row['packets']} packets, "
        f"departures off by {row['departure_error_worst_ns']} ns at most, timers late by "
        f"{row['timer_lateness_worst_ns']} ns at most"
    )
    verdict = Verdict.PASS if row["pass"] else Verdict.FAIL
    say(mark_verdict(verdict, text), markup=True, wrong=not row["pass"])

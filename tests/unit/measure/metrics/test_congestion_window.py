"""The congestion window in the kernel's reports, by hand."""

import math
from pathlib import Path

from support.synthetic_run import START_NS, write_run

from twoway.measure.analysis import Analysis
from twoway.measure.metrics.congestion_window import congestion_window

HEADER = "# rtt: us\ntime_ns,source_port,cwnd,ssthresh,rtt_us\n"


def _measured(folder: Path, rows: list[tuple[int, int, int]]) -> float:
    """Return first's largest window, from samples of time (ms), port and window."""
    lines = [f"{START_NS + ms * 10**6},{port},{cwnd},-1,2500\n" for ms, port, cwnd in rows]
    (write_run(folder) / "sockets/tcp-info.csv").write_text(HEADER + "".join(lines))
    analysis = Analysis(folder)
    (found,) = congestion_window.measure(analysis, analysis.connections["first"])
    return found


def test_largest_window_of_the_steady_window(tmp_path: Path) -> None:
    """Only samples of that connection from 10 to 30 ms count towards the largest window."""
    rows = [(9, 40001, 90), (10, 40001, 8), (29, 40001, 7), (29, 40002, 50), (30, 40001, 70)]
    assert _measured(tmp_path, rows) == 8


def test_undefined_without_a_sample(tmp_path: Path) -> None:
    """A steady window without a sample has no largest window."""
    assert math.isnan(_measured(tmp_path, [(9, 40001, 90), (20, 40002, 5)]))

"""CSV: a row for each point of each series, for R, pandas and spreadsheets."""

import csv
import io
from collections.abc import Iterator

from twoway.report.cells import cells
from twoway.report.format import Format
from twoway.report.series import ConnectionSeries, RunSeries

HEADER = ("connection", "quantity", "unit", "time_s", "value")

Row = tuple[str, str, str, float, float]


def encode(run: RunSeries) -> bytes:
    """Write all series as one table.

    Goodput stands at the start of its interval. Times are s after the start of traffic.
    """
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(HEADER)
    for series in run.connections:
        rows.writerows(map(cells, _rows(run, series)))
    return text.getvalue().encode()


def _rows(run: RunSeries, series: ConnectionSeries) -> Iterator[Row]:
    known = series.ssthresh >= 0
    table = (
        ("goodput", "Mbit/s", run.edges_ns[:-1], series.goodput_mbit),
        ("cwnd", "segments", series.sampled_ns, series.cwnd),
        ("ssthresh", "segments", series.sampled_ns[known], series.ssthresh[known]),
        ("smoothed_rtt", "ms", series.sampled_ns, series.smoothed_rtt_us / 1e3),
    )
    for quantity, unit, time_ns, values in table:
        times_s = (time_ns - run.manifest.clock.start_ns) / 1e9
        for time_s, value in zip(times_s.tolist(), values.tolist(), strict=True):
            yield series.connection.name, quantity, unit, time_s, value


FORMAT = Format("csv", ".csv", "a table with a row for each point", encode)

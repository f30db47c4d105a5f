"""CSV with a row for each point of each series, for R, pandas and spreadsheets."""

import csv
import io

from twoway.report.exports import Format
from twoway.report.paper_text import cells
from twoway.report.series import RunSeries, list_quantities

HEADER = ("connection", "quantity", "unit", "time_s", "value")


def encode(run: RunSeries) -> bytes:
    """Write all series as one table.

    Goodput is at the start of its interval. Times are s after the start of traffic.
    """
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(HEADER)
    for row in list_quantities(run):
        for time_s, value in zip(row.time_s.tolist(), row.values.tolist(), strict=True):
            rows.writerow(cells((row.connection, row.quantity, row.unit, time_s, value)))
    return text.getvalue().encode()


FORMAT = Format("csv", ".csv", "a table with a row for each point", encode)

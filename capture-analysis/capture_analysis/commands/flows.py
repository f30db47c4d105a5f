"""List the connections of a capture.

Columns: packets, payload, duration, time to connect, time from the client's first data to the
server's, the longest stall and its cause, round trip time, direction of the data, place of the tap
on the path, rate of the bottleneck, goodput, share of data sent again, the limit of the transfer
("link": it is full; "queue": one stands on the path; "sender": its congestion window or its
application), and whether the ACKs are compressed. Near the data's receiver the round trip is the
receiver's own delay, and is marked; the time to connect is that of the path. The rate is "="
given, "~" measured, "?" a guess, of one digit, or ">" at least that, which was delivered. Near the
data's receiver a column says what is seen there: segments lost before the tap and sent again,
segments out of order, delayed ACKs, a shut window; or "nothing" of these (metrics: receiving). ACKs
are compressed, spaced, bunched (by the path or by the receiver), or it cannot be told (metrics:
compression_verdict).

--sort and --where take columns of docs/connections.md, such as connect, first_byte, stall, cause,
server_port; times are in s. A filter has comparisons, and, or, not, and brackets:
'server_port == 443 and (stall > 1 or cause == refused)'.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence

import numpy as np

from capture_analysis.commands.measuring import add_options, flow_count, read_settings
from capture_analysis.facts.facts import Evidence
from capture_analysis.metrics.compression_verdict import COMPRESSION_VERDICT, verdict_word
from capture_analysis.metrics.goodput import GOODPUT
from capture_analysis.metrics.retransmissions import RETRANSMITTED
from capture_analysis.metrics.round_trip_time import RTT_MEDIAN, RTT_MIN
from capture_analysis.one_capture.connection_filter import column_of, select_connections
from capture_analysis.one_capture.connections import Connections
from capture_analysis.one_capture.datagram_rows import HEADINGS as UDP_HEADINGS
from capture_analysis.one_capture.datagram_rows import datagram_rows
from capture_analysis.one_capture.document import (
    connections_in_order,
    data_direction,
    document,
    vantage,
    warnings,
)
from capture_analysis.one_capture.from_one import Value
from capture_analysis.one_capture.limit import SHORT, limit_of
from capture_analysis.one_capture.single import Measured, measure
from capture_analysis.one_capture.trouble import receiver_words
from capture_analysis.reading.capture import Capture

LISTED = 40
HEADINGS = (
    *("connection", "packets", "payload", "time", "connect", "first byte", "stall", "cause", "RTT"),
    *("least RTT", "data", "tap", "bottleneck", "goodput", "again", "limit", "receiver", "ACKs"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `flows` to its parser."""
    add_options(parser)
    parser.add_argument(
        "--top",
        "--flows",
        type=flow_count,
        default=LISTED,
        metavar="N",
        help="number of connections to list (default: %(default)s)",
    )
    parser.add_argument(
        "--sort",
        metavar="COLUMN",
        help="list those with the largest value first (default: most payload in one direction)",
    )
    parser.add_argument("--where", metavar="FILTER", help="list only connections that match")


def run(arguments: argparse.Namespace) -> int:
    """Print the table; warnings go to stderr.

    Raises: AnalysisError if there is no packet of TCP or UDP.
    """
    measured = measure(Capture(arguments.path, inside=arguments.inside), read_settings(arguments))
    udp = document(measured, arguments.top)["datagrams"]
    connections = Connections(measured)
    order = np.array(connections_in_order(measured))
    if arguments.sort:
        column_of(connections, arguments.sort)
        order = connections.sort_by(arguments.sort)
    if arguments.where:
        order = order[select_connections(connections, arguments.where)[order]]
    listed = order[: arguments.top].tolist()
    rows = (row(measured, connections, number) for number in listed)
    if len(connections):
        sys.stdout.write(table([HEADINGS, *rows]))
    if left := len(order) - len(listed):
        sys.stdout.write(f"... and {left} more (--top)\n")
    if udp and not arguments.where:
        separated = "\n" if len(connections) else ""
        sys.stdout.write(separated + table([UDP_HEADINGS, *datagram_rows(udp)[: arguments.top]]))
    for text in warnings(measured):
        sys.stderr.write(f"capture-analysis: {text}\n")
    return 0


def table(rows: Sequence[Sequence[str]]) -> str:
    """Format rows as text in columns, the first flush left, others right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return "".join(_line(cells, widths) for cells in rows)


def _line(cells: Iterable[str], widths: Iterable[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    return "  ".join((first[0].ljust(first[1]), *(c.rjust(w) for c, w in others))) + "\n"


def row(measured: Measured, connections: Connections, number: int) -> tuple[str, ...]:
    """Return a connection's cells for the table.

    Round trip time, tap and bottleneck are those of the direction with most data.
    """
    tally, facts = measured.tally, measured.facts
    payload = [tally.new_payload.value_of(2 * number + half) for half in (0, 1)]
    main = 2 * number + int(np.argmax(payload))
    found = (each.of_direction(main, tally, facts) for each in measured.estimators)
    values = {quantity: value for each in found for quantity, value in each.items()}
    named = {quantity.name: value for quantity, value in values.items()}
    goodput = values[GOODPUT]
    tap = vantage(float(facts.tap_at[main])).removeprefix("near the data ").removeprefix("in the ")
    return (
        measured.flows.label(number),
        str(sum(tally.packets(2 * number + half) for half in (0, 1))),
        amount(sum(payload), "B"),
        f"{connections.numbers('time')[number]:.3f} s",
        *(_milliseconds(connections, name, number) for name in ("connect", "first_byte")),
        _stall(connections, number),
        connections.words("cause")[number],
        _text(values[RTT_MEDIAN], "{:.3f} ms" + (" (receiver)" if tap == "receiver" else "")),
        _text(values[RTT_MIN], "{:.3f} ms"),
        direction_word(*payload),
        tap,
        bottleneck(
            float(facts.rate_bit[main]),
            Evidence(int(facts.rate_evidence[main])),
            0.0
            if isinstance(goodput, str)
            else _least_bit(float(facts.delivered_bit[main]), goodput),
        ),
        "-" if isinstance(goodput, str) else amount(1e6 * goodput, "bit/s"),
        _text(values[RETRANSMITTED], "{:.3%}"),
        limit_of(named).cause,
        receiver_words(named),
        verdict_word(values[COMPRESSION_VERDICT]),
    )


def _milliseconds(connections: Connections, name: str, number: int) -> str:
    found = connections.numbers(name)[number]
    return "-" if np.isnan(found) else f"{1e3 * found:.3f} ms"


def _stall(connections: Connections, number: int) -> str:
    stall = connections.numbers("stall")[number]
    return f"{stall:.3f} s" if stall else "-"


def _text(value: Value, shape: str) -> str:
    return "-" if isinstance(value, str) else shape.format(value)


def amount(number: float, unit: str, digits: int = 3) -> str:
    """Format a number with some significant digits and a prefix: "1.23 MB"."""
    for prefix, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= factor:
            return f"{_significant(number / factor, digits)} {prefix}{unit}"
    return f"{_significant(number, digits)} {unit}"


def _significant(number: float, digits: int) -> str:
    return f"{float(f'{number:.{digits}g}'):.3g}"


def direction_word(forward: int, backward: int) -> str:
    """Draw the payload's direction as an arrow from source to destination."""
    return {"forward": "->", "backward": "<-", "both": "<->", "none": "-"}[
        data_direction(forward, backward)
    ]


def _least_bit(delivered_bit: float, goodput_mbit: float) -> float:
    """Return the rate that the link carries at least; 0 if the transfer is too short to tell."""
    return delivered_bit if delivered_bit >= SHORT * goodput_mbit * 1e6 else 0.0


def bottleneck(rate_bit: float, evidence: Evidence, least_bit: float = 0.0) -> str:
    """Format a rate with its evidence: "=" given, "~" measured, "?" guessed, ">" at least."""
    if np.isnan(rate_bit) and least_bit > 0:
        return ">" + amount(least_bit, "bit/s", 1)
    mark = {Evidence.GIVEN: "=", Evidence.MEASURED: "~", Evidence.GUESSED: "?"}.get(evidence, "")
    digits = 1 if evidence == Evidence.GUESSED else 3
    return "-" if np.isnan(rate_bit) else mark + amount(rate_bit, "bit/s", digits)

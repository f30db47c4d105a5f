"""A run's results in a few lines: its flows, and those of its programs."""

from collections.abc import Iterable, Iterator, Sequence

from capture_analysis.definition import Definition
from capture_analysis.metrics.goodput import GOODPUT
from capture_analysis.metrics.queue import QUEUE_MEAN
from capture_analysis.metrics.retransmissions import RETRANSMITTED
from capture_analysis.metrics.round_trip_time import RTT_MEDIAN, RTT_MIN, RTT_P95

from twoway.contract.metrics import FoundFlow, Metric, Metrics
from twoway.contract.network import Connection
from twoway.manifest import Manifest
from twoway.measure.metrics.completion import COMPLETION_TIME
from twoway.measure.metrics.datagrams import (
    DATAGRAM_DELAY,
    DATAGRAM_DELAY_P95,
    DATAGRAM_LOSS,
    DATAGRAM_RATE,
)
from twoway.measure.metrics.programs import RUN_TIME
from twoway.measure.metrics.queue_length import QUEUE_P95
from twoway.report.connections import shown_names, summary
from twoway.report.flow_groups import as_groups, with_groups
from twoway.report.repetitions import summarise_runs

_RTT = (RTT_MIN, RTT_MEDIAN, RTT_P95)
_RTT_TITLES = ("rtt min", "rtt p50", "rtt p95, ms")
_DONE, NOT_DONE = "done in, s", "not done"
# The families of metrics of a connection's row, in its order.
FAMILIES = tuple(each.name for each in (GOODPUT, RETRANSMITTED, QUEUE_MEAN, QUEUE_P95, *_RTT))
_TITLES = ("Mbit/s", "retrans, %", "queue mean", "queue p95", *_RTT_TITLES, _DONE)
_UDP = (DATAGRAM_RATE, DATAGRAM_LOSS, DATAGRAM_DELAY, DATAGRAM_DELAY_P95)
_UDP_TITLES = ("UDP flow", "Mbit/s", "lost, share", "delay mean", "delay p95, s")
_PROGRAM = (RUN_TIME,)
_PROGRAM_TITLES = ("program", "run time, s")
# The most flows of programs to list: the first ones.
MOST_FOUND = 10
# Width of a bar in a terminal.
_BAR_CELLS = 12
Row = Sequence[str]


def flow_table(manifest: Manifest, metrics: Metrics) -> list[str]:
    """List the results as lines: connections, UDP flows, programs, and the programs' flows."""
    lines = _connections(manifest.connections, metrics)
    if manifest.datagrams:
        rows = [(each.name, *_cells(each.name, metrics, _UDP)) for each in manifest.datagrams]
        lines += align_columns([_UDP_TITLES, *rows])
    if manifest.programs:
        rows = [(each.name, *_cells(each.name, metrics, _PROGRAM)) for each in manifest.programs]
        lines += align_columns([_PROGRAM_TITLES, *rows])
    if metrics.found:
        titles = ("of programs", "packets", "bytes", "lost", *_RTT_TITLES)
        shown = metrics.found[:MOST_FOUND]
        lines += align_columns([titles, *(row for each in shown for row in _directions(each))])
        if more := len(metrics.found) - len(shown):
            lines.append(f"and {more} more, in the report")
    return lines


def _connections(connections: tuple[Connection, ...], metrics: Metrics) -> list[str]:
    """List goodput, retransmissions, queue and round trips; of many, how they are distributed."""
    if len(shown_names(connections, metrics)) < len(connections):
        return summary(connections, metrics)
    rows = [(each.name, *_row(each, metrics)) for each in connections]
    return align_columns(_without_empty([("flow", *_TITLES), *rows])) if rows else []


def _without_empty(rows: list[Row]) -> list[Row]:
    """Leave out the last column if no flow is a transfer."""
    return rows if any(row[-1] for row in rows[1:]) else [row[:-1] for row in rows]


def sweep_table(runs: Iterable[tuple[str, Manifest, Metrics]], *, bars: bool = False) -> list[str]:
    """List flows and programs of many runs; only the worst connections of a run with many.

    Alike flows of one name are one row, with the means of their metrics.

    A point with repetitions has three rows: the least of each number, its median, and its most.

    Args:
        runs: each run's name and its results.
        bars: True to draw each connection's goodput also as a bar, relative to the largest.
    """
    runs = _summarised(runs)
    rows: list[Row] = []
    udp: list[Row] = []
    programs: list[Row] = []
    for name, manifest, measured in runs:
        metrics = with_groups(measured, manifest.connections)
        by_name = {each.name: each for each in as_groups(manifest.connections)}
        rows += [
            (name, each, *_row(by_name[each], metrics))
            for each in shown_names(tuple(by_name.values()), metrics)
        ]
        udp += [(name, d.name, *_cells(d.name, metrics, _UDP)) for d in manifest.datagrams]
        programs += [(name, p.name, *_cells(p.name, metrics, _PROGRAM)) for p in manifest.programs]
    titles: Row = _TITLES
    if rows:
        titles, *rows = _without_empty([titles, *rows])
    if bars and rows:
        titles, rows = (*titles, "goodput".ljust(_BAR_CELLS)), _with_bars(rows)
    titled = ((("flow", *titles), rows), (_UDP_TITLES, udp), (_PROGRAM_TITLES, programs))
    tables = ((("point", *titles), found) for titles, found in titled)
    return [
        line
        for titles, found in tables
        if found
        for line in align_columns([titles, *found], left=2)
    ]


def _with_bars(rows: Sequence[Row]) -> list[Row]:
    """Append a bar to each row of a sweep's connections: its goodput relative to the largest."""
    goodputs = [0.0 if row[2] == "-" else float(row[2]) for row in rows]
    most = max(goodputs) or 1.0
    return [(*row, _bar(goodput / most)) for row, goodput in zip(rows, goodputs, strict=True)]


def _bar(share: float) -> str:
    """Draw a share from 0 to 1 as a bar, in eighths of a cell."""
    full, part = divmod(round(share * 8 * _BAR_CELLS), 8)
    return ("█" * full + " ▏▎▍▌▋▊▉"[part])[:_BAR_CELLS].ljust(_BAR_CELLS)


def _summarised(
    runs: Iterable[tuple[str, Manifest, Metrics]],
) -> Iterator[tuple[str, Manifest, Metrics]]:
    """Replace a point's repetitions by the least, the median and the most of each metric."""
    repeated: dict[str, list[tuple[str, Manifest, Metrics]]] = {}
    for name, manifest, metrics in runs:
        point = name if manifest.repetition is None else name[: name.rindex("seed=") - 1]
        repeated.setdefault(point, []).append((name, manifest, metrics))
    for point, group in repeated.items():
        if group[0][1].repetition is None:
            yield from group
            continue
        if len(group) == 1:
            yield f"{point}, 1 seed", group[0][1], group[0][2]
            continue
        quantiles = summarise_runs([each for _, _, each in group])
        for word in ("least", "median", "most"):
            yield f"{point}, {word} of {len(group)}", group[0][1], quantiles[word]


def _row(connection: Connection, metrics: Metrics) -> Row:
    """Format a connection's goodput, retransmissions, queue, round trips, and completion."""
    (done,) = _cells(connection.name, metrics, (COMPLETION_TIME,))
    return (
        *_cells(connection.name, metrics, (GOODPUT,)),
        *_cells(connection.name, metrics, (RETRANSMITTED,), scale=100),
        *_cells(connection.direction, metrics, (QUEUE_MEAN, QUEUE_P95)),
        *_cells(connection.name, metrics, _RTT),
        "" if connection.transfer_bytes is None else NOT_DONE if done == "-" else done,
    )


def _directions(flow: FoundFlow) -> Iterable[Row]:
    """List a program's flow, one row for each direction."""
    first, second = flow.name.split(" > ")
    for ends, sent in (
        (f"{first} > {second}", flow.forward),
        (f"{second} > {first}", flow.backward),
    ):
        sizes = (
            str(sent.packets),
            str(sent.payload_bytes),
            "-" if sent.lost is None else str(sent.lost),
        )
        yield f"{flow.protocol} {ends}", *sizes, *(_value(sent.metrics.get(d.name)) for d in _RTT)


def _cells(
    name: str, metrics: Metrics, definitions: Sequence[Definition], scale: int = 1
) -> list[str]:
    """Format metrics of a flow or queue."""
    return [_value(metrics.metrics.get(f"{each.name}.{name}"), scale) for each in definitions]


def _value(metric: Metric | None, scale: int = 1) -> str:
    """Format a metric times a factor; a dash without a value."""
    return "-" if metric is None or metric.value is None else f"{metric.value * scale:.4g}"


def align_columns(rows: Sequence[Row], left: int = 1) -> list[str]:
    """Align columns: the first ones to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([*map(str.ljust, row[:left], widths), *map(str.rjust, row[left:], widths[left:])])
        for row in rows
    ]

"""The table of all connections on a page: its sentence, its rows, and sums by service and host."""

import base64
import gzip
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.one_capture.connections import CAUSES, FINE, Connections, Words

# Most rows on a page, the slowest first.
ROWS = 50_000
# Most rows of a table of services or hosts.
_SUMS = 12
# Times of several connections that differ by no more than this are "each".
_ALIKE = 1.25
# What one connection, and several, did; and the column with its time.
_WORDS = {
    "refused": ("was refused", "were refused", ""),
    "no answer": ("got no answer to its SYNs", "got no answer to their SYNs", "time"),
    "connect": ("was slow to connect", "were slow to connect", "stall"),
    "cannot tell": (
        *("shows too little to tell a cause", "show too little to tell a cause"),
        "stall",
    ),
    "server": ("waits for the server", "wait for the server", "stall"),
    "losses": ("waits for data sent again", "wait for data sent again", "stall"),
    "zero window": ("waits for a shut window", "wait for a shut window", "stall"),
    "network": ("waits for the network", "wait for the network", "stall"),
    "reset": ("was reset before the answer", "were reset before the answer", "time"),
}
_COLUMNS = (
    *("id", "client", "client_port", "server", "server_port", "start", "time", "connect"),
    *("first_byte", "stall", "stall_at", "cause", "sent_again", "payload", "end"),
)


def summary(connections: Connections) -> str:
    """Say what the connections do: "488 of 500 connections are fine; 12 wait for ..."."""
    count, fine = len(connections), int(connections.fine.sum())
    if fine == count:
        return f"All {count:,} connections are fine: none failed or stood still for long."
    told = "; ".join(_groups(connections))
    if connections.clock_s:
        waits = f"for {seconds(connections.clock_s)}: a clock set forward or a stall"
        told += (
            f"; all connections at that time wait {waits}, which cannot be told"
            if connections.waited > 1
            else f"; its sender had data outstanding and sent none again {waits} of the host"
        )
    if not fine:
        return f"Of {count:,} connection{'s' if count > 1 else ''} {told}."
    return f"{fine:,} of {count:,} connections {'is' if fine == 1 else 'are'} fine; {told}."


def slowest(connections: Connections) -> str:
    """Say which connection failed or stood still for longest; "" if all are fine."""
    if connections.fine.all():
        return ""
    row = int(connections.slowest_first()[0])
    one, _, _ = _WORDS[connections.words("cause")[row]]
    name = f"connection {row}, {_end(connections, row, 'client')} to "
    name += _end(connections, row, "server")
    stall, at = (connections.numbers(column)[row] for column in ("stall", "stall_at"))
    waited = f", {seconds(stall)} from {seconds(at)} on" if stall else ""
    return f"The slowest is {name}: it {one}{waited}."


def seconds(number: float) -> str:
    """Write a time with two significant digits: "1.0 s"."""
    if number < 1:
        return f"{float(f'{1e3 * number:.2g}'):g} ms"
    return f"{number:.1f} s" if number < 10 else f"{number:.0f} s"


def _groups(connections: Connections) -> Iterator[str]:
    number = connections.words("cause").number
    for cause, (one, several, column) in _WORDS.items():
        rows = np.flatnonzero(number == CAUSES.index(cause))
        if not len(rows):
            continue
        told = f"{len(rows):,} {one if len(rows) == 1 else several}"
        if column:
            times = connections.numbers(column)[rows]
            least, most = float(times.min()), float(times.max())
            if len(rows) == 1:
                told += f", {seconds(most)}"
            elif most <= _ALIKE * least:
                told += f", {seconds(float(np.median(times)))} each"
            else:
                told += f", {seconds(least)} to {seconds(most)}"
        yield told


def _end(connections: Connections, row: int, which: str) -> str:
    address = connections.words(which)[row]
    port = int(connections.numbers(f"{which}_port")[row])
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def pack_rows(connections: Connections) -> str:
    """Pack the slowest rows for the page's script: columns as JSON, by gzip and base64."""
    order = connections.slowest_first()[:ROWS]
    columns = {name: _packed(connections.columns[name], order) for name in _COLUMNS}
    text = json.dumps(columns, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()


def _packed(column: Any, order: IntArray) -> Any:
    if isinstance(column, Words):
        used, number = np.unique(column.number[order], return_inverse=True)
        return {"all": [column.all[each] for each in used.tolist()], "number": number.tolist()}
    return [
        None if np.isnan(value) else int(value) if value.is_integer() else float(f"{value:.4g}")
        for value in column[order].tolist()
    ]


def sums(connections: Connections) -> list[tuple[str, list[dict[str, Any]]]]:
    """Sum up the connections by service and by host, those with most trouble first."""
    port = connections.numbers("server_port")
    ports, service = np.unique(port, return_inverse=True)
    by = [("service", [f"port {each:.0f}" for each in ports], service)]
    by += [
        (name, connections.words(name).all, connections.words(name).number)
        for name in ("server", "client")
    ]
    return [(name, _sum_groups(connections, names, number)) for name, names, number in by]


def _sum_groups(connections: Connections, names: Sequence[str], number: IntArray) -> list[Any]:
    trouble = np.bincount(number, weights=~connections.fine, minlength=len(names))
    count = np.bincount(number, minlength=len(names))
    order = np.lexsort((-count, -trouble))
    return [
        _sum(connections, names[each], number == each)
        for each in order[:_SUMS].tolist()
        if count[each]
    ]


def _sum(connections: Connections, name: str, mine: BoolArray) -> dict[str, Any]:
    causes = connections.words("cause").number[mine]
    told = [(cause, int((causes == CAUSES.index(cause)).sum())) for cause in CAUSES]
    medians = {
        column: _median(connections.numbers(column)[mine]) for column in ("connect", "first_byte")
    }
    return {
        "name": name,
        "connections": int(mine.sum()),
        "trouble": ", ".join(
            f"{count} {cause}" for cause, count in told if count and cause != FINE
        ),
        "stall": float(connections.numbers("stall")[mine].max()),
        **medians,
    }


def _median(values: Any) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else None

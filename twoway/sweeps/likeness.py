"""Writing an experiment that resembles a capture, and comparing the run with the capture.

The path has what capture-analysis infers: the bottleneck's rate, half of the shortest round trip in
each direction, and as many packets in the queue as the round trip grows by. Flows have their sizes
and starts.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capture_analysis import parallel_analysis
from capture_analysis.facts.facts import Evidence
from capture_analysis.one_capture.document import directions_in_order, flow
from capture_analysis.one_capture.limit import FULL, MOST_OF_IT
from capture_analysis.one_capture.single import Given

from twoway.contract.network import Connection
from twoway.errors import UsageError
from twoway.manifest import read_manifest
from twoway.runs.captures import packed_name

# The most flows that an experiment has: those with most data.
_MOST_FLOWS = 16
# Bytes of a frame besides the segment: headers of Ethernet, IP and TCP with time stamps.
_HEADERS = 66
# Of these in IP packets.
_IP_HEADERS = 52
# Such a frame without data, and with time stamps: a SYN.
_SMALL_FRAME = 74
# netem's delays are multiples of this, ms.
_TICK_MS = 0.008
# Losses with a shorter queue than this are not the queue's, packets.
_LEAST_QUEUE = 10
# The limit of a queue that no packet shows.
_USUAL_QUEUE = 100
_PORT = re.compile(r":(\d+)(?= |$)")
# The longest traffic that is run, s.
_LONGEST_S = 120
# By the numbers of capture_analysis' metric congestion_control, from 1.
_CONTROLS = ("reno", "cubic", "bbr", "vegas", "bic", "htcp", "hybla")
# A window that shrinks to less than this share after a loss is Reno's; CUBIC keeps 0.7.
_RENO_BELOW = 0.6
# The metrics that are compared, in the order of the table.
_COMPARED = (
    *("goodput", "rtt_min", "rtt_median", "rtt_p95", "retransmitted", "segments", "data_time"),
    *("bottleneck_rate", "window_decrease"),
)


@dataclass(frozen=True)
class Transfer:
    """The data of one direction of a connection, as a capture shows them.

    Attributes:
        name: its name in the capture.
        forward: whether its data have the direction of the largest transfer's.
        start_s: time of its first data, after the first of all.
        payload: bytes of data.
        near: whether the capture was made near the data's sender.
        metrics: the metrics of capture-analysis that have a value.
        facts: rate of the bottleneck in Mbit/s, and the segment's bytes; None if unknown.
        guessed: whether that rate is a guess.
        ip: the version of its IP.
    """

    name: str
    forward: bool
    start_s: float
    payload: int
    near: bool
    metrics: Mapping[str, float]
    facts: Mapping[str, float | None]
    guessed: bool = False
    ip: int = 4

    @property
    def has_pace(self) -> bool:
        """Tell whether its sender had nothing to send for most of the time."""
        shares = (self.metrics.get(name, 0) for name in ("limited_application", "afar_application"))
        return max(shares) > MOST_OF_IT

    @property
    def is_paced(self) -> bool:
        """Tell whether that is its application's pace: one that fills its link is its control's."""
        sure_mbit = 0 if self.guessed else self.facts["bottleneck"] or 0
        full = self.metrics.get("throughput", 0) > FULL * sure_mbit > 0
        return self.has_pace and not full


def transfers_of(path: Path) -> list[Transfer]:
    """Measure the transfers of a capture, most data first.

    Raises: AnalysisError if it cannot be read; UsageError if no connection has data.
    """
    measured = parallel_analysis.measure_file(path, Given(), 1)
    order = directions_in_order(measured)[:_MOST_FLOWS]
    if not order:
        raise UsageError(f"{path}: no TCP connection has data")
    starts = {direction: measured.tally.first_ns.value_of(direction) for direction in order}
    first_ns, flows, found = min(starts.values()), measured.flows, []
    ends = [(flows.source(d // 2)[0], flows.destination(d // 2)[0]) for d in order]
    ends = [pair[::-1] if d % 2 else pair for pair, d in zip(ends, order, strict=True)]
    for direction, (sender, receiver) in zip(order, ends, strict=True):
        number, turned = divmod(direction, 2)
        name = ("forward", "backward")[turned]
        said = flow(measured, number, Counter())
        facts, metrics = said["facts"][name], said[name]
        found.append(
            Transfer(
                name=flows.name(number),
                forward=sender == ends[0][0] or receiver != ends[0][0],
                start_s=(starts[direction] - first_ns) / 1e9,
                payload=int(metrics["payload"]["value"] or 1),
                near=facts["vantage"]["value"] != "near the data receiver",
                metrics={n: float(m["value"]) for n, m in metrics.items() if _is_number(m)},
                facts={n: facts[n]["value"] for n in ("bottleneck", "segment")},
                guessed=facts["bottleneck"]["evidence"] == str(Evidence.GUESSED),
                ip=6 if ":" in sender else 4,
            )
        )
    return found


def _is_number(metric: Mapping[str, Any]) -> bool:
    value = metric["value"]
    return isinstance(value, int | float) and math.isfinite(value)


def experiment_like(transfers: Sequence[Transfer], title: str) -> tuple[dict[str, Any], list[str]]:
    """Describe an experiment that resembles transfers, and the values that these do not show."""
    assumed: list[str] = []
    forward, reverse = (
        [each for each in transfers if each.forward is along] for along in (True, False)
    )
    rate = _rate(forward, "forward", assumed)
    back = _rate(reverse, "reverse", assumed) if reverse else rate
    if not reverse:
        assumed.append("The rate of ACKs' direction is that of the data: no data show it.")
    # Near the data's receiver a round trip is that from there to the receiver.
    trips = [t.metrics["rtt_min"] for t in transfers if t.near and "rtt_min" in t.metrics]
    if not trips:
        raise UsageError("no round trip can be measured: capture near the data's sender")
    # The shortest round trip is that of two small packets.
    small_ms = sum(_SMALL_FRAME * 8 / each / 1e3 for each in (rate, back))
    delay_ms = round(max(0, round((min(trips) - small_ms) / 2 / _TICK_MS)) * _TICK_MS, 3)
    links = [
        {"rate_mbit": mbit, "delay_ms": delay_ms, **_queue(each, mbit, where, assumed)}
        for where, each, mbit in (("forward", forward, rate), ("reverse", reverse, back))
    ]
    if forward and reverse:
        assumed.append(
            "Data in both directions: a round trip grows by both queues, and each has all of it."
        )
    flows = [
        {
            "name": f"t{number}",
            "from": "h1" if each.forward else "h2",
            "to": "h2" if each.forward else "h1",
            "congestion": _control(each),
            **({"ip": 6} if each.ip == 6 else {}),
            "start_s": round(each.start_s, 6),
            **_data(each),
        }
        for number, each in enumerate(transfers, start=1)
    ]
    if paced := [f"t{n}" for n, each in enumerate(transfers, start=1) if each.is_paced]:
        assumed.append(f"The application limits {', '.join(paced)}: a constant rate.")
    for control in dict.fromkeys(_control(each) for each in transfers if not _shown(each)):
        unsure = [
            f"t{n}"
            for n, each in enumerate(transfers, start=1)
            if not _shown(each) and _control(each) == control
        ]
        assumed.append(f"No window shows the control of {', '.join(unsure)}: {control}.")
    if len(transfers) == _MOST_FLOWS:
        assumed.append(f"The experiment has the {_MOST_FLOWS} transfers with most data at most.")
    last_s = max(map(_stop_s, transfers))
    if last_s > _LONGEST_S:
        assumed.append(f"The capture's data take {last_s:.0f} s, the run ends at {_LONGEST_S} s.")
    return {
        "schema": 1,
        "title": title,
        "topology": {"name": "two_node"},
        "profile": {"directions": dict(zip(("forward", "reverse"), links, strict=True))},
        "stack": {"preset": "linux"},
        "flows": flows,
        "duration_s": min(_LONGEST_S, math.ceil(1.5 * last_s + 1)),
        "warm_up_s": 0,
    }, assumed


def _data(transfer: Transfer) -> dict[str, Any]:
    """Describe a transfer's data: all at once, or packets at the pace of its application."""
    if not transfer.is_paced or not {"goodput", "data_time"} <= transfer.metrics.keys():
        return {"transfer": {"bytes": transfer.payload}}
    segment = transfer.facts["segment"] or 1448
    packets_mbit = transfer.metrics["goodput"] * (segment + _IP_HEADERS) / segment
    stop_s = round(_stop_s(transfer), 6)
    return {"rate_mbit": round(max(packets_mbit, 1e-6), 6), "stop_s": stop_s}


def _stop_s(transfer: Transfer) -> float:
    """Return the time of a transfer's last data."""
    return transfer.start_s + sum(transfer.metrics.get(name, 0) for name in ("data_time", "pauses"))


def _rate(transfers: Sequence[Transfer], where: str, assumed: list[str]) -> float:
    """Find the rate of a direction's bottleneck, Mbit/s."""
    # The gaps of a flow that its application limits are the application's.
    sure = [t for t in transfers if t.facts["bottleneck"] and not t.guessed]
    guesses = [t for t in transfers if t.facts["bottleneck"] and not t.is_paced]
    if rates := [float(t.facts["bottleneck"] or 0) for t in sure or guesses]:
        if not sure:
            assumed.append(f"The rate {where} is guessed from gaps between packets.")
        return round(max(rates), 3)
    fastest = max(transfers, key=lambda each: each.metrics.get("throughput", 0))
    rate = round(fastest.metrics.get("throughput", 1) * 2, 3)
    assumed.append(f"No data show the rate {where}: twice the throughput of {fastest.name}.")
    return max(rate, 0.001)


def _queue(
    transfers: Sequence[Transfer], rate_mbit: float, where: str, assumed: list[str]
) -> dict[str, Any]:
    """Find a direction's queue: the packets by which the round trip grows; or its random losses."""
    grown = [
        (each.metrics["rtt_p99"] - each.metrics["rtt_min"], each)
        for each in transfers
        if each.near and {"rtt_p99", "rtt_min"} <= each.metrics.keys()
    ]
    if not grown:
        assumed.append(f"No round trip shows the queue {where}: {_USUAL_QUEUE} packets.")
        return {"queue_packets": _USUAL_QUEUE}
    growth_ms, longest = max(grown, key=lambda pair: pair[0])
    frame = (longest.facts["segment"] or 1448) + _HEADERS
    packets = math.ceil(growth_ms * rate_mbit * 1e3 / 8 / frame)
    lost = max(each.metrics.get("retransmitted", 0) for each in transfers)
    if lost and packets >= _LEAST_QUEUE:
        return {"queue_packets": packets}
    queue: dict[str, Any] = {"queue_packets": max(2 * packets, _USUAL_QUEUE)}
    if lost:
        assumed.append(f"Segments are lost {where}, and no queue grows: random losses.")
        return queue | {"loss": {"percent": round(100 * lost, 3)}}
    assumed.append(f"No loss shows the limit of the queue {where}: twice the longest.")
    return queue


def _shown(transfer: Transfer) -> bool:
    """Tell whether a transfer's window shows a congestion control."""
    return bool({"congestion_control", "window_decrease"} & transfer.metrics.keys())


def _control(transfer: Transfer) -> str:
    """Name the congestion control that a transfer's window follows; CUBIC if none is sure."""
    if number := transfer.metrics.get("congestion_control"):
        return _CONTROLS[round(number) - 1]
    if transfer.has_pace and not transfer.is_paced and not _shown(transfer):
        return "bbr"  # it paces itself, and fills its link
    return "reno" if transfer.metrics.get("window_decrease", 1) < _RENO_BELOW else "cubic"


def compare_with(transfers: Sequence[Transfer], run: Path) -> list[tuple[str, str, float, Any]]:
    """Measure a run's transfers as the capture's, and put their metrics side by side.

    Returns: for each transfer and metric: its name, the metric, the capture's value, the run's.
    """
    connections = read_manifest(run).connections
    measured: dict[str, list[Transfer]] = {}
    rows = []
    for transfer, connection in zip(transfers, connections, strict=True):
        interface = connection.source_interface if transfer.near else connection.sink_interface
        if interface not in measured:
            measured[interface] = transfers_of(run / packed_name(interface))
        mine = _of(measured[interface], connection)
        rows += [
            (connection.name, name, transfer.metrics[name], mine and mine.metrics.get(name))
            for name in _COMPARED
            if name in transfer.metrics
        ]
    return rows


def _of(found: Sequence[Transfer], connection: Connection) -> Transfer | None:
    """Find a connection's transfer by its ports."""
    ports = {str(connection.source_port), str(connection.port)}
    same = (each for each in found if set(_PORT.findall(each.name)) == ports)
    return max(same, key=lambda each: each.payload, default=None)

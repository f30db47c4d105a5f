"""Sentences on the limit of a transfer, and on the compression of its ACKs."""

from collections.abc import Iterator, Mapping
from typing import Any

from capture_analysis.facts.facts import LAN_NS
from capture_analysis.metrics.compression_factor import BOUND_TOLERANCE
from capture_analysis.metrics.compression_verdict import verdict_word
from capture_analysis.metrics.congestion_control import ALIKE, CONTROLS
from capture_analysis.one_capture.document import numbers
from capture_analysis.one_capture.limit import limit_of, queueing
from capture_analysis.one_capture.trouble import receiver_sentence
from capture_analysis.pages.page_template import number

_SENDER, _RECEIVER = "near the data sender", "near the data receiver"
_SOURCES = {
    "data": "the spacing of its data",
    "acks": "the pace of its acknowledgements",
    "link data": "the spacing of all data on the link",
    "link acks": "the pace of all acknowledgements on the link",
    "opposite": "the opposite way",
}
_SIGNS = {
    "times": "times to both ends",
    "checksums": "one end's checksums are not filled in yet",
    "padding": "one end's short frames are not padded yet",
    "ttl": "TTLs show a router",
}
LAN_MS = LAN_NS / 1e6
# Shorter times before an answer are not named.
_LONG_ANSWER_S = 0.5
_WAITED_FOR = {
    "application": "its application",
    "recovery": "the repair of losses",
    "receive_window": "the receiver's window",
    "congestion_window": "its congestion window",
    "ack_compression": "ACKs held on their path",
    "send_buffer": "its send buffer",
    "zero_window": "a zero window",
    "pause": "pauses",
    "nagle": "ACKs of its small data (Nagle)",
}
_SENT_AGAIN = (
    ("fast", "because ACKs reported a gap"),
    ("timeout", "after a time-out"),
    ("spurious", "though acknowledged"),
    ("other", "for another reason"),
)
Metrics = Mapping[str, Mapping[str, Any]]


def headline(
    metrics: Metrics, facts: Mapping[str, Any], *, without_limit: bool = False
) -> list[tuple[str, str]]:
    """Answer the page's questions about one direction.

    Args:
        metrics: the direction's metrics: "forward" or "backward" of a document's flow.
        facts: the direction's facts, from the same document.
        without_limit: True to leave out the sentences of `limit`, which the page's headline has.
    """
    vantage = str(facts.get("vantage", {}).get("value", "unknown"))
    limits = () if without_limit else limit(metrics, vantage)
    return [
        ("What limits the transfer?", " ".join([*limits, *_shares(metrics)])),
        ("Are ACKs compressed?", " ".join(_compression(metrics, vantage))),
        ("What does it cost?", " ".join(_cost(metrics, facts))),
        ("How sure is this?", " ".join(_sureness(metrics, facts, vantage))),
        ("What can this capture not show?", " ".join(_limits(metrics, vantage))),
    ]


def word(metrics: Metrics) -> str:
    """Say a direction's verdict in a word (compression_verdict)."""
    found = metrics.get("compression_verdict", {})
    return verdict_word(found.get("why") if found.get("value") is None else found["value"])


def value(metrics: Metrics, name: str) -> float | None:
    """Return a metric's number; None if it is undefined or missing."""
    found = metrics.get(name, {}).get("value")
    return None if found is None else float(found)


def percent(share: float | None) -> str:
    """Format a share in percent, with three significant digits."""
    return "\N{EN DASH}" if share is None else f"{100 * share:.3g} %"


def _compression(metrics: Metrics, vantage: str) -> Iterator[str]:
    found = word(metrics)
    faster, shrunk = value(metrics, "acks_faster"), value(metrics, "acks_shrunk")
    where = "" if vantage == _SENDER else " on the path from the receiver to the tap"
    if found == "compressed":
        yield f"Yes{where}: by their time stamps, {percent(shrunk)} of them were sent over a longer"
        yield "time than that in which they arrived."
    elif found == "spaced" and faster and faster > (shrunk or 0.0):
        yield f"No{where}: {percent(faster)} come faster than their data can have arrived, but by"
        yield "their time stamps the receiver held them."
    elif found == "spaced":
        yield f"No{where}: they come at their data's pace"
        yield f"(all but {percent(faster)})." if faster else "(all of them)."
    else:
        why = metrics.get("compression_verdict", {}).get("why", "it was not measured")
        yield f"It cannot be told: {why}."
    if found == "bunched":
        yield f"{percent(faster)} of them come faster than their data can."
    factor, bound = value(metrics, "compression_factor"), value(metrics, "compression_factor_bound")
    if found in ("compressed", "bunched") and factor and value(metrics, "bottleneck_rate"):
        yield f"They are typically {number(factor)} times closer than their data" + (
            beside_bound(factor, bound) if bound else "."
        )


def beside_bound(factor: float, bound: float) -> str:
    """End a sentence on a compression factor: compare it with the most that a queue can do."""
    if factor <= bound:
        return f"; a queue can compress them at most {number(bound)} times."
    if factor <= bound * (1 + BOUND_TOLERANCE):
        return ": as close as a queue can send them."
    return f", more than a queue can compress them: {number(bound)} times."


def _cost(metrics: Metrics, facts: Mapping[str, Any]) -> Iterator[str]:
    goodput, efficiency = value(metrics, "goodput"), value(metrics, "efficiency")
    rate = value(metrics, "bottleneck_rate")
    if goodput is None:
        yield "There is too little data to tell."
        return
    pauses = value(metrics, "pauses")
    yield f"Goodput is {number(goodput)} Mbit/s" + (
        f", pauses of {number(pauses)} s included;" if pauses else ";"
    )
    if rate is None:
        yield "the bottleneck's rate is unknown."
    elif efficiency is None:
        why = metrics.get("efficiency", {}).get("why", "it was not measured")
        yield f"its share of the bottleneck cannot be told: {why}."
    else:
        yield f"{percent(efficiency)} of the capacity of a bottleneck of {number(rate)} Mbit/s."
        yield "Other traffic, losses and windows also take a part of the rest."
    burst, bunched = value(metrics, "ack_bunch_bytes_max"), value(metrics, "acks_bunched")
    if burst and bunched and facts.get("bottleneck", {}).get("evidence") in ("given", "measured"):
        yield f"{percent(bunched)} of the ACKs travel in bunches, the largest of which releases"
        yield f"{number(burst)} bytes at once."


def limit(metrics: Metrics, vantage: str) -> Iterator[str]:
    """Say in a few sentences what limits the transfer, and what its receiver shows."""
    values = numbers(metrics)
    found = limit_of(values)
    yield found.sentence
    if found.cause == "sender":
        yield "A capture at the data's sender would tell which."
    added = queueing(values) if vantage == _SENDER else receiver_sentence(values)
    yield from filter(None, (_shut(metrics), _answers(metrics), added))


def _shut(metrics: Metrics) -> str:
    """Name the zero windows, which are seen from any place."""
    windows, longest = value(metrics, "zero_windows"), value(metrics, "zero_window_longest")
    if not windows:
        return ""
    times = "once" if windows == 1 else f"{number(windows)} times"
    whole = f"{number(value(metrics, 'zero_window_time'))} s in all, " if windows > 1 else ""
    return f"Its receiver announced a zero window {times}: {whole}the longest {number(longest)} s."


def _answers(metrics: Metrics) -> str:
    """Name a long time before an answer."""
    longest = value(metrics, "answer_longest")
    if longest is None or longest < _LONG_ANSWER_S:
        return ""
    return f"The longest time from the other end's data to its next data is {number(longest)} s."


def _shares(metrics: Metrics) -> Iterator[str]:
    shares = {what: value(metrics, f"limited_{name}") or 0.0 for name, what in _WAITED_FOR.items()}
    if value(metrics, "limited_application") is not None:
        most_first = sorted(shares, key=lambda what: -shares[what])
        told = [f"{percent(shares[what])} {what}" for what in most_first if shares[what] >= 0.005]
        yield f"All its time, pauses included: {', '.join(told)}."
    handshake, again = value(metrics, "handshake_rtt"), value(metrics, "retransmissions")
    if handshake is not None:
        yield f"The handshake took a round trip of {number(handshake)} ms."
    if again:
        kinds = {what: value(metrics, f"retransmissions_{kind}") for kind, what in _SENT_AGAIN}
        why = ", ".join(f"{number(count)} {what}" for what, count in kinds.items() if count)
        yield f"Segments sent again: {number(again)}{f' ({why})' if why else ''}."
    control = metrics.get("congestion_control", {})
    if number_of_control := control.get("value"):
        yield f"Its window follows the rules of {CONTROLS[int(number_of_control) - 1]}."
    elif (why := str(control.get("why"))).startswith(ALIKE):
        yield f"Its window{why.removeprefix('the window')}."
    if syns := value(metrics, "syns_again"):
        yield f"Packets of the handshake sent again: {number(syns)}."


def _sureness(metrics: Metrics, facts: Mapping[str, Any], vantage: str) -> Iterator[str]:
    bottleneck, at = facts.get("bottleneck", {}), facts.get("vantage", {})
    evidence, source = str(bottleneck.get("evidence")), str(bottleneck.get("source"))
    rate = f"{number(bottleneck.get('value'))} Mbit/s"
    agree = (
        f"{percent(bottleneck.get('confidence'))} of {number(bottleneck.get('samples'))} gaps agree"
    )
    peak = value(metrics, "delivered_peak")
    # If a transfer is shorter than the peak's window, its peak is below its goodput.
    shown = peak and peak >= (value(metrics, "goodput") or 0)
    least = f"; it delivered up to {number(peak)} Mbit/s" if shown else ""
    if bottleneck.get("value") is None:
        yield f"The bottleneck's rate could not be found{least}."
    elif evidence == "given":
        yield f"The bottleneck's rate, {rate}, is given, and taken as it is{least}."
    elif evidence == "measured":
        link = (
            "The narrowest link before the tap carries"
            if source.endswith("data")
            else "The path's bottleneck carries"
        )
        yield f"{link} {rate}, measured by {_SOURCES[source]} ({agree}{least})."
    elif source == "opposite":
        yield f"The bottleneck's rate is a guess, {rate}, as for the opposite direction{least}."
    else:
        yield f"The bottleneck's rate is a guess, {rate}, from {_SOURCES.get(source, source)}"
        yield f"({agree}{least})."
    if unseen := value(metrics, "unseen"):
        yield f"{percent(unseen)} of its payload is acknowledged but not in the capture:"
        yield "goodput, rates and losses are those of the rest."
    placed_by = [str(each) for each in at.get("evidence", ())]
    if vantage == "unknown":
        signs = "; ".join(_SIGNS[each] for each in placed_by)
        where = "contradict each other" if len(placed_by) > 1 else "leave no end beside it"
        yield "The capture's place on the path is unknown" + (
            f": its signs {where} ({signs})." if signs else "."
        )
    else:
        trip = facts.get("round_trip", {}).get("value")
        beside = vantage != "in the middle" and trip is not None and trip < LAN_MS
        where = f"{vantage}, on that host or beside it, as on any LAN" if beside else vantage
        signs = ", ".join(_SIGNS[each] for each in placed_by) or "nothing tells its place"
        yield f"The capture was made {where}: {signs}"
        yield f"(agreement of times {percent(at.get('confidence'))})."


def _limits(metrics: Metrics, vantage: str) -> Iterator[str]:
    held, queued = value(metrics, "bunches_held"), value(metrics, "bunches_compressed")
    if vantage == _RECEIVER:
        yield "The effect of a queue on the ACKs' path, and the round-trip time."
    elif held is None or queued is None:
        yield (
            "Whether a queue compressed the ACKs or the receiver held them: their time "
            "stamps, or a second capture near the receiver, would tell."
        )
    else:
        yield (
            f"By the ACKs' time stamps the receiver held {number(held)} bunches and the path "
            f"compressed {number(queued)}."
        )
    yield "One capture shows no one-way delays, no queue lengths, and no places of losses."

"""The answer of a run: one sentence from its numbers, and the figure that shows it."""

from collections import Counter
from collections.abc import Iterator

from capture_analysis.metrics.ack_bunches import ACK_BUNCH_MAX
from capture_analysis.metrics.goodput import GOODPUT
from capture_analysis.pictures.figure import Figure

from twoway.contract.metrics import Metrics
from twoway.contract.verdicts import Verdicts
from twoway.manifest import Manifest
from twoway.measure.metrics.acks import ACK_BUNCH_MAX_SENT
from twoway.measure.metrics.completion import COMPLETION_TIME_MEDIAN
from twoway.measure.metrics.congestion_epochs import DROPS_DATA
from twoway.measure.metrics.datagrams import DATAGRAM_LOSS
from twoway.measure.metrics.utilisation import UTILISATION_DATA

# If there are more links or UDP flows than this, they are not named one by one.
_MOST_NAMED = 3
# A share of time below this counts as none.
_CARRIES_ALL = 5e-4
# Bunches of up to this many ACKs are not mentioned.
_PAIR = 2
# The figure of a metric's family, by the start of its name; goodput for all others.
_FIGURES = {
    "ack": "queues",
    "busy": "queues",
    "completion": "completion-time-all",
    "compression": "queues",
    "congestion_window": "cwnd",
    "drops": "queues",
    "idle": "queues",
    "plateau": "queues",
    "queue": "queues",
    "rtt": "rtt",
    "sawtooth": "cwnd",
    "window": "cwnd",
}
_FALLBACK = ("goodput", "queues")


def answer(manifest: Manifest, metrics: Metrics) -> str:
    """Write the results in one sentence: links without data, bunches, losses, completion times."""
    parts = list(_parts(manifest, metrics))
    if not parts:
        return f"Flows of programs: {len(metrics.found)}." if metrics.found else "Nothing was sent."
    return f"{'; '.join(parts)}."


def hero_first(figures: list[Figure], verdicts: Verdicts) -> list[Figure]:
    """Move the figure of the run's subject to the front.

    The subject is the rate of a DTM channel if there is one, else the metric with most statements
    in the experiment, else goodput, or the queues if there is no connection.
    """
    drawn = {each.id: each for each in figures if any(len(line.x) for line in each.lines)}
    rates = [name for name in drawn if name.startswith("rate-")]
    said = Counter(_figure_of(row.metric) for row in verdicts.rows)
    wanted = [*rates, *(name for name, _ in said.most_common()), *_FALLBACK]
    first = next((drawn[name] for name in wanted if name in drawn), figures[0])
    return [first, *(each for each in figures if each is not first)]


def _figure_of(metric: str) -> str:
    return next((name for start, name in _FIGURES.items() if metric.startswith(start)), "goodput")


def _parts(manifest: Manifest, metrics: Metrics) -> Iterator[str]:
    drops = sum(_values(metrics, DROPS_DATA.name))
    if links := _without_data(manifest, metrics):
        bunch = _largest_bunch(manifest, metrics)
        # Bunches are the reason only in a run without losses.
        joint = ", and" if drops or max(links.values()) < _CARRIES_ALL else ":"
        bunches = f"{joint} ACKs come in bunches of up to {bunch:,.0f}" if bunch else ""
        yield _links(links) + bunches
    if drops:
        yield f"{drops:,.0f} data packet{'s are' if drops > 1 else ' is'} dropped"
    lasting = [each.name for each in manifest.connections if each.transfer_bytes is None]
    if still := [name for name in lasting if _value(metrics, f"{GOODPUT.name}.{name}") == 0]:
        yield f"{len(still)} of {len(lasting)} connections deliver{'s' * (len(still) == 1)} nothing"
    for each in manifest.datagrams[:_MOST_NAMED]:
        loss = _value(metrics, f"{DATAGRAM_LOSS.name}.{each.name}")
        if loss is not None:
            yield f"{each.name} loses {_percent(loss)} of its packets"
    median = _value(metrics, COMPLETION_TIME_MEDIAN.name)
    if median is not None:
        yield f"the median transfer takes {median:.3g} s"


def _without_data(manifest: Manifest, metrics: Metrics) -> dict[str, float]:
    """Find the share of time without data for each link that limits a flow."""
    directions = [each.direction for each in manifest.connections]
    directions += [name for each in manifest.datagrams for name in each.directions]
    found = {
        name: _value(metrics, f"{UTILISATION_DATA.name}.{name}")
        for name in dict.fromkeys(directions)
    }
    return {name: 1 - value for name, value in found.items() if value is not None}


def _links(links: dict[str, float]) -> str:
    shares = {name: _percent(share) for name, share in links.items()}
    least, most = min(links.values()), max(links.values())
    if len(set(shares.values())) == 1:
        who = "Each link" if len(links) > 1 else "The link"
        if most < _CARRIES_ALL:
            return f"{who} carries data all the time"
        return f"{who} is without data {_percent(most)} of the time"
    if len(shares) > _MOST_NAMED:
        shown = f"{_percent(least)} to {_percent(most)}"
        return f"{len(links)} links are without data {shown} of the time"
    (first, share), *others = shares.items()
    return ", ".join(
        [
            f"The link {first} is without data {share} of the time",
            *(f"{name} {share}" for name, share in others),
        ]
    )


def _largest_bunch(manifest: Manifest, metrics: Metrics) -> float:
    """Find the largest bunch of ACKs that grew after the receiver sent them; 0 if none did."""
    found = 0.0
    for each in manifest.connections:
        arrived = _value(metrics, f"{ACK_BUNCH_MAX.name}.{each.name}") or 0.0
        if arrived > max(_value(metrics, f"{ACK_BUNCH_MAX_SENT.name}.{each.name}") or 0.0, _PAIR):
            found = max(found, arrived)
    return found


def _value(metrics: Metrics, name: str) -> float | None:
    found = metrics.metrics.get(name)
    return None if found is None else found.value


def _values(metrics: Metrics, family: str) -> list[float]:
    return [
        each.value
        for name, each in metrics.metrics.items()
        if name.partition(".")[0] == family and each.value is not None
    ]


def _percent(share: float) -> str:
    return "0 %" if share < _CARRIES_ALL else f"{100 * share:.3g} %"

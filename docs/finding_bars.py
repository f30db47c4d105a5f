"""The bars of the ten pictures of docs/findings.md: numbers of docs/results, by finding."""

from typing import NamedTuple

_REMEDY = "kalampoukas-remedies@window=28,acks={},opposite={}"
_PENDULUM = "pendulum@up_mbit={},control={}"
_AQM = "aqm@aqm={},up_mbit={}"
_LOCK = "dtm-fig9-controls@control=reno,rounding={},start={}"
_PROBE = "kalampoukas-5.4@phase=0.006738,probe={}"
_DELAYED = "zhang-delayed-ack@acks={},windows=30+25,profile={}"
_COMPRESSED = "ACKs compressed, %"
_DOWN, _SECOND, _LEFT = "acks_compressed.down", "acks_compressed.second", "efficiency.left"


class Row(NamedTuple):
    """A bar: its label, and the point and metric of its number."""

    label: str
    point: str
    metric: str


class Bars(NamedTuple):
    """A picture.

    Attributes:
        axis: what is measured, with its unit.
        rows: the bars, from top to bottom.
        scale: the factor from the metric to the axis: 100 if a share is in per cent.
    """

    axis: str
    rows: tuple[Row, ...]
    scale: float = 1


FINDINGS = {
    "a-third-is-lost": Bars(
        "share of the link that one connection gets, %",
        (
            Row("alone", _REMEDY.format("shared", 0), _LEFT),
            Row("beside one in the other direction", _REMEDY.format("shared", 1), _LEFT),
        ),
        100,
    ),
    "acks-first": Bars(
        "share of the link that one of two connections gets, %",
        (
            Row("ACKs wait behind data", _REMEDY.format("shared", 1), _LEFT),
            Row("ACKs have a queue of their own", _REMEDY.format("own", 1), _LEFT),
            Row("ACKs go first", _REMEDY.format("priority", 1), _LEFT),
        ),
        100,
    ),
    "today": Bars(
        _COMPRESSED,
        tuple(
            Row(f"{name}, 8 Mbit/s down, {up} up", _PENDULUM.format(up, control), _DOWN)
            for up in (8, 1)
            for name, control in (("Reno", "reno"), ("CUBIC", "cubic"), ("BBR", "bbr"))
        ),
        100,
    ),
    "bbr-idles": Bars(
        "time that the fast line is busy, %",
        tuple(
            Row(f"{name}, 8 Mbit/s down, 1 up", _PENDULUM.format(1, control), "utilisation.forward")
            for name, control in (("Reno", "reno"), ("CUBIC", "cubic"), ("BBR", "bbr"))
        ),
        100,
    ),
    "queue-per-flow": Bars(
        f"{_COMPRESSED}, 8 Mbit/s down and up",
        tuple(
            Row(aqm, _AQM.format(aqm, 8), _DOWN)
            for aqm in ("drop-tail", "codel", "pie", "cake", "fq_codel")
        ),
        100,
    ),
    "unequal-lines": Bars(
        f"{_COMPRESSED}, 8 Mbit/s down, 1 up",
        tuple(
            Row(aqm, _AQM.format(aqm, 1), _DOWN)
            for aqm in ("drop-tail", "codel", "pie", "cake", "cake-flowblind", "fq_codel")
        ),
        100,
    ),
    "timer": Bars(
        "time that the line is busy, %",
        (
            Row("Linux's timer", "zhang-fig4-5@buffer=20", "utilisation.forward"),
            Row("Linux's timer, 60 packets", "zhang-fig4-5@buffer=60", "utilisation.forward"),
            Row("4.3BSD's clock of half seconds", "zhang-fig4-5-bsd", "utilisation.forward"),
        ),
        100,
    ),
    "tail-loss-probe": Bars(
        "segments in a burst",
        (
            Row("probe off", _PROBE.format("off"), "busy_period_segments.long-forward-1"),
            Row("probe on", _PROBE.format("on"), "busy_period_segments.long-forward-1"),
        ),
    ),
    "delayed-acks": Bars(
        f"{_COMPRESSED}, of the second connection",
        (
            Row("an ACK a segment", _DELAYED.format("every-segment", "zhang-1ms"), _SECOND),
            Row("delayed, 500 kbit/s", _DELAYED.format("delayed", "zhang-1ms"), _SECOND),
            Row("delayed, 50 kbit/s", _DELAYED.format("delayed", "zhang-10ms"), _SECOND),
        ),
        100,
    ),
    "rounding": Bars(
        "throughput of the first flow, Mbit/s, of 5",
        tuple(
            Row(f"rounded {how}, {start}", _LOCK.format(rounding, at), "throughput.first")
            for how, rounding, best, worst in (
                ("up", "up", "0.01", "0.022"),
                ("to the nearest", "nearest", "0.01", "0.008"),
                ("down", "down", "0.022", "0.02"),
            )
            for start, at in (("best start", best), ("worst start", worst))
        ),
    ),
}

"""Write docs/hidden.md: twenty findings on the papers' TCP, on Linux's own, and on the newest.

`hidden_page.py run` makes the runs, and keeps a line for each metric of a point in
docs/results/hidden.jsonl; `make hidden` calls it. The rule and the findings were committed before
these runs, after a trial of pendulum with Reno, of zhang-fig4-5 and of kalampoukas-5.2.
"""

import json
import sys
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import twoway
from twoway.backends.registry import find_backend
from twoway.description.point import find_source
from twoway.description.stack import Stack

PAGE = Path(__file__).with_name("hidden.md")
KEPT = PAGE.parent / "results/hidden.jsonl"
# The columns, each with the kernel that its runs have.
STACKS = {"papers": "guest", "linux": "guest", "newest": "newest"}
# Fields of a stack that are the setup's, not TCP's.
_SETUP = ("preset", "ip", "mtu_bytes")


class Finding(NamedTuple):
    """A finding: a metric of a point, and its value without the effect.

    Attributes:
        sentence: what holds with the papers' TCP.
        point: the point of an experiment.
        metric: what is measured there.
        without: the metric where the effect is absent: a number, or another point's value.
    """

    sentence: str
    point: str
    metric: str
    without: float | str


_TEXT = """\
# What the papers' TCP hides

The experiments of the five papers have the [papers' TCP](limits.md#hosts): an ACK for each segment,
no time stamps, packets of one segment, and where a paper needs it no SACK, RACK or tail loss probe.
Hosts of today have `stack: {{preset: linux}}`. {count} findings, each a metric of a point, ran on
both, with the same link, controls, windows and starts:

{counts}

In brackets is the metric's value without the effect: a number, such as 0 for ACKs that are
compressed, or what another point has on the same stack. The share is that of the papers' effect
which the other stack has. From 0.75 on the finding *stays*, from 0.25 on it is *weaker*, above
-0.25 *gone*, else *reversed*; the rule was committed before the runs, after trials at two points.
Each number is one run, and the lock of a DTM channel depends on milliseconds.

{table}

`docs/results/hidden.jsonl` has a line for each metric of a point, with the identities of its runs;
`make hidden` makes it and this page. A line of your own:

```console
$ echo '{{"environment": "pendulum@up_mbit=8,control=reno", "seed": null,
  "set": {{"stack.preset": "linux"}}}}' | tr -d '\\n' | twoway evaluate
```

`set` leaves the other fields of the file's `stack` as they are. The runs here have all of them as
Linux has them, but for the field that an experiment compares: `tail_loss_probe` of
`kalampoukas-5.4`, `pacing` of `fast-balance`. A point on another stack has no predictions and no
claims: these are about the papers' TCP.
"""
_ONE, _OTHER = ("pendulum@up_mbit={},control={}".format, "aqm@aqm={},up_mbit={}".format)
_REMEDY = "kalampoukas-remedies@window=28,acks={},opposite={}".format
_LOCK = "dtm-fix-hold@hold_ms={},rounding=nearest".format
_FAST = "fast-balance@delay=80,third=340,pacing={}".format
_PROBE = "kalampoukas-5.4@phase=0.006738,probe={}".format
_SHORT = "short-transfers@uploads={},aqm=drop-tail".format
_DOWN, _BUSY, _TIMER = "acks_compressed.down", "utilisation.forward", "zhang-fig4-5@buffer=20"
_COMPRESSION = (
    Finding("ACKs of fixed windows are compressed", "zhang-fig8", "acks_compressed.second", 0),
    Finding(
        "CUBIC compresses ACKs on a fast link",
        "modern-cc@control=cubic,buffer=100",
        "acks_compressed.left",
        0,
    ),
    Finding("Reno compresses ACKs on equal lines", _ONE(8, "reno"), _DOWN, 0),
    Finding("BBR compresses fewer than Reno there", _ONE(8, "bbr"), _DOWN, _ONE(8, "reno")),
    Finding("BBR compresses ACKs on unequal lines", _ONE(1, "bbr"), _DOWN, 0),
    Finding("CoDel leaves ACKs compressed", _OTHER("codel", 8), _DOWN, 0),
    Finding(
        "A queue for each flow ends compression on equal lines",
        _OTHER("cake", 8),
        _DOWN,
        _OTHER("drop-tail", 8),
    ),
    Finding(
        "A queue for each flow leaves ACKs compressed on unequal lines", _OTHER("cake", 1), _DOWN, 0
    ),
)
_LOST = (
    Finding(
        "Traffic in the other direction costs a third of the link",
        _REMEDY("shared", 1),
        "efficiency.left",
        _REMEDY("shared", 0),
    ),
    Finding(
        "A queue of their own for ACKs wins it back",
        _REMEDY("own", 1),
        "efficiency.left",
        _REMEDY("shared", 1),
    ),
    Finding("Two Tahoe connections leave a third of each line idle", _TIMER, _BUSY, 1),
    Finding("Beside an upload BBR leaves a fast line idle", _ONE(1, "bbr"), _BUSY, 1),
    Finding(
        "Reno in a short buffer leaves a third of a fast link idle",
        "modern-cc@control=reno,buffer=30",
        _BUSY,
        1,
    ),
)
_LOCKED = (
    Finding("The two windows grow out of phase", _TIMER, "window_correlation_opposite", 0),
    Finding(
        "A DTM channel locks a flow below its 5 Mbit/s",
        "dtm-fig9@delay_ms=40,start_mbit=0,rounding=nearest",
        "throughput.first",
        5,
    ),
)
_MORE = (
    Finding("No decrease after a loss ends that lock", _LOCK(500), "throughput.first", _LOCK(0)),
    Finding(
        "FAST loses throughput without pacing", _FAST("off"), "utilisation.reverse", _FAST("on")
    ),
    Finding(
        "The tail loss probe splits bursts",
        _PROBE("on"),
        "busy_period_segments.long-forward-1",
        _PROBE("off"),
    ),
    Finding("A timer of half seconds keeps Tahoe's line busier", "zhang-fig4-5-bsd", _BUSY, _TIMER),
    Finding("An upload delays short transfers", _SHORT(1), "completion_time_median", _SHORT(0)),
)
FINDINGS = (*_COMPRESSION, *_LOST, *_LOCKED, *_MORE)


def verdict(papers: float, found: float | None) -> str:
    """Compare the effect on another stack with that on the papers' stack.

    Args:
        papers: the metric less its value without the effect, with the papers' stack.
        found: the same with the other stack; None if the run is not to be believed.
    """
    if found is None:
        return "cannot be told"
    share = found / papers
    if share <= -1 / 4:
        return "reversed"
    return "stays" if share >= 3 / 4 else "weaker" if share >= 1 / 4 else "gone"


def needed() -> dict[str, list[str]]:
    """List the metrics that the findings need, by point."""
    found: dict[str, list[str]] = {}
    for each in FINDINGS:
        points = (each.point, each.without) if isinstance(each.without, str) else (each.point,)
        for point in points:
            found.setdefault(point, [])
            found[point] += [each.metric] * (each.metric not in found[point])
    return found


def changes(point: str, stack: str) -> dict[str, Any]:
    """Return the fields that give a point a stack: all but those that an axis of its sets."""
    if stack == "papers":
        return {}
    document = find_source(point.partition("@")[0]).document
    axes = {path for axis in document.get("matrix", {}).values() for path in axis["set"]}
    own = Stack(preset="linux").model_dump()
    fields = {field: own[field] for field in document["stack"] if field not in _SETUP}
    given = {f"stack.{field}": value for field, value in fields.items()}
    set_here = {path: value for path, value in given.items() if path not in axes}
    return {"stack.preset": "linux", **set_here, "kernel": STACKS[stack]}


def run(stacks: list[str]) -> None:
    """Make the runs of some stacks, and keep their lines beside those of the others."""
    lines = {(line["point"], line["metric"]): line for line in kept()[1:]} if KEPT.exists() else {}
    head = kept()[0] if KEPT.exists() else {}
    head |= {s: find_backend("uml", STACKS[s]).guest.release for s in stacks}  # type: ignore[attr-defined]
    asked = [
        {"id": f"{stack} {point}", "environment": point, "seed": None, "metrics": metrics}
        | {"set": changes(point, stack), "longest_s": 600}
        for stack, (point, metrics) in product(stacks, needed().items())
    ]
    problems = []
    for answer in twoway.evaluate(asked):
        stack, _, point = answer["id"].partition(" ")
        if problem := answer.get("error") or answer["fidelity"]:
            problems.append(f"{point}: {stack}: {problem}")
        for metric in needed()[point]:
            line = lines.setdefault((point, metric), {"point": point, "metric": metric, "runs": {}})
            value = answer["metrics"][metric]["value"] if answer.get("sound") else None
            line[stack] = value if value is None else float(f"{value:.7g}")
            line["runs"][stack] = answer.get("identity", "")[:16]
    ordered = [lines[point, metric] for point, metrics in needed().items() for metric in metrics]
    KEPT.write_text("".join(f"{json.dumps(each)}\n" for each in (head, *ordered)), "utf-8")
    if problems:
        raise SystemExit("\n".join(problems))


def kept() -> list[dict[str, Any]]:
    """Read the kernel of each stack, and the lines of the runs."""
    return [json.loads(line) for line in KEPT.read_text("utf-8").splitlines()]


def page() -> str:
    """Return the page's text."""
    head, *lines = kept()
    values = {(line["point"], line["metric"]): line for line in lines}
    others = [stack for stack in STACKS if stack in head and stack != "papers"]
    columns = ["finding", "metric", "the papers' stack"]
    for stack in others:
        columns += [f"`linux`, {head[stack]}", "share", "verdict"]
    table = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    words: dict[str, list[str]] = {stack: [] for stack in others}
    for each in FINDINGS:
        line = values[each.point, each.metric]
        without = values.get((str(each.without), each.metric), dict.fromkeys(head, each.without))
        cells = [f"`{each.point}` `{each.metric}`", _cell(line["papers"], without["papers"])]
        for stack in others:
            believed = None not in (line[stack], without[stack])
            found = line[stack] - without[stack] if believed else None
            effect = line["papers"] - without["papers"]
            words[stack].append(verdict(effect, found))
            share = "" if found is None else f"{found / effect + 0:.4g}"
            cells += [_cell(line[stack], without[stack]), share, words[stack][-1]]
        table.append(f"| {each.sentence} | {' | '.join(cells)} |")
    counts = [
        f"- `linux`, {head[stack]}: " + ", ".join(f"{w} {n}" for w, n in Counter(said).items())
        for stack, said in words.items()
    ]
    return _TEXT.format(count=len(FINDINGS), counts="\n".join(counts), table="\n".join(table))


def _cell(value: float | None, without: float | None) -> str:
    found, absent = ("not believed" if x is None else f"{x:.4g}" for x in (value, without))
    return f"{found} ({absent})"


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(sys.argv[2:] or [*STACKS])
    PAGE.write_text(page(), encoding="utf-8")

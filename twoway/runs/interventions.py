"""Outcomes of interventions, and the equality with the original run before the first."""

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from capture_analysis.columns import IntArray
from zstandard import ZstdDecompressor

from twoway.contract.files import open_run_file, read_run_file
from twoway.contract.network import START_NS, whole_ns
from twoway.description.interventions import (
    FlowControl,
    FlowWindow,
    Intervention,
    LinkChange,
    PacketName,
    Programs,
    QueueLimit,
    places_of,
    queue_of,
)
from twoway.description.point import Point
from twoway.errors import RunError
from twoway.manifest import Happened, Intervened
from twoway.plan.interventions import OUTCOMES, packet_interventions
from twoway.plan.timing import stop_ns

# The consequence of a setting in force that no packet meets.
NOTHING = "changes nothing from then on"
# The reason why a program's sleep, or its reading, is as before.
_AS_BEFORE = {
    "resume": "its sender sends nothing then, or waits for something else than time",
    "read": "no packet comes, or nothing waits to be read",
}
_HEADER_BYTES, _RECORD = 24, struct.Struct("<IIII")
_OUTCOME = re.compile(r"(\d{1,19}) (\d{1,19}) (\d{1,19})")
# Why a packet that came has no other fate, by action.
_MOOT = {
    "delay": "the guest's memory is full",
    "duplicate": "the guest's memory is full",
    "reorder": "fewer packets come to the link after it",
    "drop": "the queue is full when it comes, and drops it itself",
    "keep": "the queue does not drop it, or drops it for another reason than its law",
    "mark": "it has a mark already, its sender does not know ECN, or the queue drops it",
    "unmark": "the queue does not mark it",
}


def original_of(point: Point) -> Point:
    """Return the same experiment without interventions."""
    return replace(point, experiment=point.experiment.model_copy(update={"interventions": []}))


def follow_interventions(
    point: Point, folder: Path, original: Path, *, strict: bool = True
) -> Intervened:
    """Find out what became of a run's interventions; compare the captures before the first.

    Args:
        point: the experiment with interventions.
        folder: the run's folder, its captures compressed.
        original: the folder of the run without interventions.
        strict: refuse every intervention that did not happen; otherwise, only runs in which none
            did: a later one may have become impossible by an earlier one.

    Raises: RunError if an intervention did not happen, or if the captures differ before the first.
    """
    happened, problems = [], []
    lines = iter(_outcomes(folder) if packet_interventions(point) else ())
    for number, each in enumerate(point.experiment.interventions):
        if found := each.packet:
            action, packet = found
            fitted, acted, first_ns = _sum(lines, point.changed, action, packet)
            what = f"interventions.{number}.{action}"
            if acted:
                text = f"{action} {in_words(packet)}"
                happened.append(Happened(what=text, packets=acted, time_ns=first_ns))
            elif fitted < packet.packet:
                others = f": {fitted} fit" if fitted else ""
                problems.append(f"{what}: {in_words(packet)} does not come to the queue{others}")
            else:
                also = ", or an intervention above has this packet" if number else ""
                problems.append(f"{what}: {in_words(packet)}: {_MOOT[action]}{also}")
        elif each.set or each.link or each.start or each.stop:
            happened.append(_planned(each, point))
        elif change := each.limit or each.control or each.window or each.resume or each.read:
            _, acted, first_ns = next(lines, (0, 0, 0))
            (what,) = each.model_fields_set
            text = _in_force(change) if not isinstance(change, Programs) else _of(what, change)
            if acted:
                happened.append(Happened(what=text, packets=0, time_ns=first_ns))
            else:
                nothing = _AS_BEFORE.get(what, NOTHING)
                problems.append(f"interventions.{number}.{what}: {text}: {nothing}")
    if problems and (strict or not happened):
        raise RunError("\n".join(problems), "`twoway export` and Wireshark show a run's packets")
    until_ns = min(each.time_ns for each in happened)
    refuse_difference(original, folder, until_ns)
    return Intervened(original=original.name, equal_until_ns=until_ns, happened=tuple(happened))


def _planned(asked: Intervention, point: Point) -> Happened:
    """Describe a change that the plan has: a sysctl, a link, a flow's start or end."""
    if change := asked.set or asked.link:
        at_ns = START_NS + whole_ns(change.at_s)
        if isinstance(change, LinkChange):
            rate, delay = change.rate_mbit, change.delay_ms
            words = [f"{rate:g} Mbit/s"] if rate is not None else []
            words += [f"a delay of {delay:g} ms"] if delay is not None else []
            text = f"link {change.direction} with {' and '.join(words)}"
        else:
            values = ", ".join(f"{name}={value}" for name, value in change.sysctls.items())
            text = f"set {values} at {change.host}"
        return Happened(what=text, packets=0, time_ns=at_ns)
    then, (action,) = asked.start or asked.stop, asked.model_fields_set
    assert then is not None
    around = point.surroundings
    flow = around.connections.get(then.flow) or around.datagrams[then.flow]
    was_ns = flow.start_ns if asked.start else flow.stop_ns
    at_ns = min(START_NS + whole_ns(then.at_s), was_ns or stop_ns(point))
    return Happened(what=f"{action} {then.flow} at {then.at_s:.9g} s", packets=0, time_ns=at_ns)


def _in_force(change: QueueLimit | FlowControl | FlowWindow) -> str:
    """Write a setting that holds from a time on."""
    if isinstance(change, QueueLimit):
        what = f"limit {change.packets} of {change.queue}"
    elif isinstance(change, FlowWindow):
        what = f"window {change.packets} of {change.flow}"
    else:
        what = f"control {change.congestion} of {change.flow}"
    return f"{what} from {change.at_s:.9g} s on"


def _of(what: str, change: Programs) -> str:
    """Write what the programs of a connection do otherwise."""
    flow = change.flow or "ports {} and {}".format(*change.ports or ())
    return f"{what} {flow} at {change.at_s:.9g} s"


def _sum(
    lines: Iterator[tuple[int, int, int]], point: Point, action: str, packet: PacketName
) -> tuple[int, int, int]:
    """Add up what became of an intervention at its places: the first counts what came."""
    queue = queue_of(packet, point.surroundings)
    assert queue is not None
    places = places_of(action, queue, point.surroundings)
    found = [next(lines, (0, 0, 0)) for _ in places]
    times_ns = [first_ns for _, acted, first_ns in found if acted]
    return found[0][0], sum(acted for _, acted, _ in found), min(times_ns, default=0)


def in_words(packet: PacketName) -> str:
    """Write which packet is meant, from the flow on."""
    words = [f"of {packet.flow}"] if packet.flow else []
    words += [f"with the sequence number {packet.sequence}"] if packet.sequence else []
    words += [f"at {packet.queue}"] if packet.queue else []
    words += [f"from {packet.from_s:.9g} s on"] if packet.from_s else []
    words += [f"until {packet.until_s:.9g} s"] if packet.until_s else []
    one = f"packet {packet.packet}" if packet.packet > 1 else "the first packet"
    return " ".join(["each packet" if packet.until_s else one, *words])


def _outcomes(folder: Path) -> Iterator[tuple[int, int, int]]:
    """Read the lines that our module left; RunError if they are none of its."""
    for line in read_run_file(folder, OUTCOMES).splitlines():
        found = _OUTCOME.fullmatch(line)
        if not found:
            raise RunError(f"the guest left no valid {OUTCOMES}: {line!r:.80}")
        fitted, acted, first_ns = map(int, found.groups())
        yield fitted, acted, first_ns


@dataclass(frozen=True)
class _Stamped:
    """A capture's bytes, and the times and places of its packets, and its end."""

    content: bytes
    time_ns: IntArray
    places: Sequence[int]

    def bytes_before(self, until_ns: int) -> bytes:
        """Return the bytes of the packets before a time."""
        return self.content[: self.places[int(np.searchsorted(self.time_ns, until_ns))]]


def refuse_difference(original: Path, folder: Path, until_ns: int) -> None:
    """Raise RunError if captures of two runs differ in a byte before a time."""
    for path in sorted(original.glob("pcap/*.pcap.zst")):
        first, content = _stamped(path), capture_bytes(folder, path.name)
        same = first.bytes_before(until_ns)
        if not content.startswith(same) or _next_ns(content, len(same)) < until_ns:
            other = _index(content)
            n = min(len(first.time_ns), len(other.time_ns))
            unequal = np.flatnonzero(first.time_ns[:n] != other.time_ns[:n])
            at_ns = int(first.time_ns[unequal[0]]) if len(unequal) else until_ns
            raise RunError(
                f"{path.name}: differs from the original's before the first intervention, which is "
                f"at {(until_ns - START_NS) / 1e9:.9f} s: at {(at_ns - START_NS) / 1e9:.9f} s"
            )


def capture_bytes(folder: Path, name: str) -> bytes:
    """Return a run's capture, decompressed; OSError without it."""
    with open_run_file(folder, f"pcap/{name}") as file:
        return ZstdDecompressor().stream_reader(file).read()


@lru_cache(maxsize=64)
def _stamped(path: Path) -> _Stamped:
    return _index(capture_bytes(path.parents[1], path.name))


def _index(content: bytes) -> _Stamped:
    """Find the packets of a capture in nanoseconds, as twoway_testbed and tcpdump write it."""
    times, places, place = [], [], _HEADER_BYTES
    while place < len(content):
        s, ns, kept, _ = _RECORD.unpack_from(content, place)
        times.append(s * 10**9 + ns)
        places.append(place)
        place += _RECORD.size + kept
    return _Stamped(content, np.array(times, dtype=np.int64), [*places, len(content)])


def _next_ns(content: bytes, place: int) -> int:
    """Return the time of the packet at a place of a capture; the largest after its end."""
    if place + _RECORD.size > len(content):
        return int(np.iinfo(np.int64).max)
    s, ns, _, _ = _RECORD.unpack_from(content, place)
    return int(s * 10**9 + ns)

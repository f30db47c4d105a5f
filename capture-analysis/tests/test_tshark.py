"""Every packet of a corpus of captures against what tshark says of it.

Where tshark differs for a reason, DEVIATIONS says where, in which field and why; anything else
that differs fails, and so does a deviation that no capture shows any more.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import corpus
import corpus_tools
import pytest
from capture_analysis.capture import Capture, Counts
from capture_analysis.columns import FlowTable, Mark, Packets, concatenate
from corpus import Specimen
from tshark_oracle import Row, ask_all

LEAST = 200


@dataclass(frozen=True)
class Deviation:
    """Where tshark is not followed.

    Attributes:
        captures: pattern of the names of captures.
        field: of Packets, or a count.
        reason: why.
    """

    captures: str
    field: str
    reason: str


DEVIATIONS: list[Deviation] = []


@dataclass(frozen=True)
class Case:
    """A capture as read, and what tshark says."""

    specimen: Specimen
    packets: Packets
    flows: FlowTable
    counts: Counts
    rows: list[Row]

    @property
    def tcp(self) -> list[Row]:
        """tshark's frames that have a TCP header and a time."""
        return [row for row in self.rows if row.is_tcp() and row["time"]]


@pytest.fixture(scope="session")
def specimens(tmp_path_factory: pytest.TempPathFactory) -> list[Specimen]:
    """The corpus."""
    folder = tmp_path_factory.mktemp("corpus")
    plain = corpus.build(folder)
    return plain + corpus_tools.build(folder, {each.name: each for each in plain})


@pytest.fixture(scope="session")
def cases(specimens: list[Specimen]) -> list[Case]:
    """All of it read, and tshark's answers."""
    answers = ask_all(each.asked or each.path for each in specimens)
    return [_case(each, rows) for each, rows in zip(specimens, answers, strict=True)]


def _case(specimen: Specimen, rows: list[Row]) -> Case:
    capture = Capture(specimen.path)
    parts = [part.widened() for part in capture.chunks(37)]
    return Case(specimen, concatenate(parts), capture.flows, capture.counts, rows)


def test_corpus_is_large(specimens: list[Specimen]) -> None:
    """The corpus has at least 200 captures, all of different names and contents."""
    assert len({each.name for each in specimens}) == len(specimens)
    assert len({each.path.read_bytes() for each in specimens}) >= LEAST


def test_frames_are_counted_as_tshark_counts_them(cases: list[Case]) -> None:
    """Every frame has the fate that tshark's fields imply: packet, fragment, not TCP, not IP."""
    _compare(cases, _count_differences)


def test_packets_are_as_tshark_says(cases: list[Case]) -> None:
    """Every column of every packet equals tshark's fields."""
    _compare(cases, _field_differences)


def _compare(
    cases: list[Case], differences: Callable[[Case], Iterator[tuple[str, str]]]
) -> None:
    """Fail with all differences that are no deviation, and with the deviations unseen."""
    found: list[str] = []
    for case in cases:
        for field, text in differences(case):
            if not any(_covers(each, case, field) for each in DEVIATIONS):
                found.append(f"{case.specimen.name}: {field}: {text}")
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:60])


def _covers(deviation: Deviation, case: Case, field: str) -> bool:
    return field == deviation.field and fnmatch(case.specimen.name, deviation.captures)


def _count_differences(case: Case) -> Iterator[tuple[str, str]]:
    """The fates of frames, as totals."""
    fates = [_fate(row) for row in case.rows]
    ours = vars(case.counts)
    if ours["frames"] != len(case.rows):
        yield "frames", f"{ours['frames']}, tshark has {len(case.rows)}"
    for fate in ("packets", "not_ip", "not_tcp", "later_fragments", "no_timestamp"):
        if ours[fate] != fates.count(fate):
            yield fate, f"{ours[fate]}, tshark has {fates.count(fate)}"


def _fate(row: Row) -> str:
    """What a frame is, by tshark's fields."""
    if not row["time"]:
        return "no_timestamp"
    if not (row["ip_source"] or row["ipv6_source"]):
        return "not_ip"
    if row.number("ip_fragment") or row.number("ipv6_fragment"):
        return "later_fragments" if _protocol(row) == 6 else "not_tcp"
    if row.is_tcp():
        return "packets"
    return "too_short" if "tcp" in row["protocols"].split(":") else "not_tcp"


def _protocol(row: Row) -> int:
    """The protocol behind IP and IPv6's fragment header."""
    return row.number("ip_protocol") or int(row["ipv6_next"].split(",")[-1])


def _field_differences(case: Case) -> Iterator[tuple[str, str]]:
    """The first row that differs in each field."""
    rows = case.tcp
    if len(rows) != len(case.packets):
        yield "rows", f"{len(case.packets)}, tshark has {len(rows)}"
        return
    for field, expected in _FIELDS.items():
        ours = getattr(case.packets, field).tolist()
        theirs = [expected(row) for row in rows]
        different = [n for n in range(len(rows)) if theirs[n] is not None and ours[n] != theirs[n]]
        if different:
            n = different[0]
            yield field, (
                f"{len(different)} differ, first packet {n} (frame {rows[n]['number']}): "
                f"{ours[n]}, tshark has {theirs[n]}"
            )
    yield from _end_differences(case, rows)


def _sack(edge: str) -> Callable[[Row], int]:
    """An edge of the first SACK block; tshark gives it relative to the acknowledged half."""

    def expected(row: Row) -> int:
        if not row[edge]:
            return 0
        return (row.number(edge) + row.number("ack_raw") - row.number("ack")) % 2**32

    return expected


_FIELDS: dict[str, Callable[[Row], int | None]] = {
    "time_ns": Row.time_ns,
    **{
        name: lambda row, name=name: row.number(name)  # type: ignore[misc]
        for name in ("frame_bytes", "payload_bytes", "flags", "window", "ip_id", "interface")
    },
    "flow": lambda row: row.number("stream"),
    "seq": lambda row: row.number("seq_raw"),
    "ack": lambda row: row.number("ack_raw"),
    "ts_value": lambda row: row.number("ts_value"),
    "ts_echo": lambda row: row.number("ts_echo"),
    "sack_left": _sack("sack_left"),
    "sack_right": _sack("sack_right"),
}


def _end_differences(case: Case, rows: list[Row]) -> Iterator[tuple[str, str]]:
    """Addresses and ports, and the marks that tshark's fields imply."""
    packets = case.packets
    for n, row in enumerate(rows):
        flow, half = int(packets.flow[n]), int(packets.half[n])
        ends = case.flows.source(flow), case.flows.destination(flow)
        address = "ip" if row["ip_source"] else "ipv6"
        theirs = tuple(
            (row[f"{address}_{end}"].split(",")[0], row.number(f"{end}_port"))
            for end in ("source", "destination")
        )
        if theirs != (ends if half == 0 else ends[::-1]):
            yield "ends", f"packet {n}: {ends}, half {half}, tshark has {theirs}"
            return
        marks = int(packets.marks[n])
        implied = {
            Mark.TIMESTAMPS: row["ts_value"] != "",
            Mark.SACK: row["sack_left"] != "",
            Mark.FIRST_FRAGMENT: row.number("ip_more") != 0,
        }
        for mark, expected in implied.items():
            if bool(marks & mark) != expected:
                yield f"marks.{mark.name}", f"packet {n} (frame {row['number']}): {marks:#x}"
                return

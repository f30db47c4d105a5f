"""Every packet of a corpus of captures against what tshark says of it.

Where tshark differs for a reason, DEVIATIONS says where, in which field and why; anything else
that differs fails, and so does a deviation that no capture shows any more.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import corpus
import corpus_tools
import numpy as np
import pytest
import tshark_case
import tshark_tracking
from capture_analysis.capture import Capture
from capture_analysis.columns import Mark, concatenate, empty_columns
from corpus import Specimen
from tshark_case import Case, fate
from tshark_oracle import Row

LEAST = 200


@dataclass(frozen=True)
class Deviation:
    """Where tshark is not followed.

    Attributes:
        fields: of Packets.
        reason: why.
        holds: whether it is the case for a packet, given our value and tshark's.
    """

    fields: tuple[str, ...]
    reason: str
    holds: Callable[[Case, int, int, int], bool]


DEVIATIONS = [
    Deviation(
        ("payload_bytes",),
        "tshark 4.0 states no length for a fragment",
        lambda case, n, _, theirs: theirs == 0 and case.marked(n, Mark.FIRST_FRAGMENT),
    ),
    Deviation(
        ("payload_bytes",),
        "tshark lets a frame's length, which editcap -L makes that of what it keeps, limit IP's",
        lambda case, _, ours, theirs: theirs < ours and case.name == "editcap/snap-and-length",
    ),
    Deviation(
        ("flags",),
        "tshark's field has the three reserved bits besides the nine flags",
        lambda _, __, ours, theirs: ours == theirs & 0x1FF,
    ),
    Deviation(
        ("ts_value", "ts_echo", "sack_left", "sack_right"),
        "tshark reads the first half of an option of which the capture lacks the other",
        lambda case, n, ours, _: ours == 0 and case.marked(n, Mark.OPTIONS_CUT),
    ),
]


@pytest.fixture(scope="session")
def specimens(tmp_path_factory: pytest.TempPathFactory) -> list[Specimen]:
    """The corpus."""
    folder = tmp_path_factory.mktemp("corpus")
    plain = corpus.build(folder)
    return plain + corpus_tools.build(folder, {each.name: each for each in plain})


@pytest.fixture(scope="session")
def cases(specimens: list[Specimen]) -> list[Case]:
    """All of it read, and tshark's answers."""
    return tshark_case.cases(specimens)


def test_corpus_is_large(specimens: list[Specimen]) -> None:
    """The corpus has at least 200 captures, all of different names and contents."""
    assert len({each.name for each in specimens}) == len(specimens)
    assert len({each.path.read_bytes() for each in specimens}) >= LEAST


def test_frames_are_counted_as_tshark_counts_them(cases: list[Case]) -> None:
    """Every frame has the fate that tshark's fields imply: packet, fragment, not TCP, not IP."""
    found = [text for case in cases for text in _count_differences(case)]
    assert not found, "\n".join(found)


def test_packets_are_as_tshark_says(cases: list[Case]) -> None:
    """Every column of every packet equals tshark's fields; all deviations listed occur."""
    seen: set[str] = set()
    found = [text for case in cases for text in _field_differences(case, seen)]
    assert not found, "\n".join(found)
    assert seen == {each.reason for each in DEVIATIONS}


def test_ends_and_marks_are_as_tshark_says(cases: list[Case]) -> None:
    """Every packet is between the ends, and has the options, that tshark says."""
    found = [text for case in cases for text in _end_differences(case)]
    assert not found, "\n".join(found)


def test_numpy_reader_agrees(cases: list[Case]) -> None:
    """Of every capture of the corpus both readers have the same packets, connections, counts."""
    for case in cases:
        capture = Capture(case.specimen.path)
        capture.reader = "numpy"
        parts = [part.widened() for part in capture.chunks()]
        packets = concatenate([empty_columns(0).widened(), *parts])
        for name, column in vars(packets).items():
            assert np.array_equal(column, vars(case.packets)[name]), f"{case.name}: {name}"
        assert capture.counts == case.counts, case.name
        assert np.array_equal(capture.flows.rows, case.flows.rows), case.name


def test_sequence_numbers_are_as_tshark_says(cases: list[Case]) -> None:
    """Unwrapped sequence and acknowledgement numbers are tshark's relative ones, modulo 2^32."""
    known = [case for case in cases if tshark_tracking.analysed(case)]
    found = [text for case in known for text in tshark_tracking.sequence_differences(case)]
    assert not found, "\n".join(found)


def test_round_trip_times_are_as_tshark_says(cases: list[Case]) -> None:
    """Round-trip times equal tshark's to the nanosecond; all deviations listed occur."""
    seen: set[str] = set()
    known = [case for case in cases if tshark_tracking.analysed(case)]
    found = [text for case in known for text in tshark_tracking.rtt_differences(case, seen)]
    assert not found, "\n".join(found)
    assert seen == {each.reason for each in tshark_tracking.RTT_DEVIATIONS}


def _count_differences(case: Case) -> Iterator[str]:
    """The fates of frames, as totals; unknown link types are not in the corpus."""
    fates = [fate(row) for row in case.rows]
    ours = vars(case.counts)
    theirs = {name: fates.count(name) for name in _FATES} | {"frames": len(fates)}
    theirs["too_short"] += theirs.pop("malformed")
    for name, count in theirs.items():
        mine = ours[name] + (ours["malformed"] if name == "too_short" else 0)
        if mine != count:
            yield f"{case.name}: {name}: {mine}, tshark has {count}"


_FATES = (
    "packets",
    "not_ip",
    "not_tcp",
    "later_fragments",
    "no_timestamp",
    "too_short",
    "malformed",
)


def _field_differences(case: Case, seen: set[str]) -> Iterator[str]:
    """The first packet that differs in each field; the reasons of deviations go into `seen`."""
    if len(case.tcp) != len(case.packets):
        yield f"{case.name}: {len(case.packets)} packets, tshark has {len(case.tcp)}"
        return
    columns = {name: [read(row) for row in case.tcp] for name, read in _FIELDS.items()}
    for field, theirs in (columns | {"flow": case.streams}).items():
        ours = getattr(case.packets, field).tolist()
        different = [n for n, value in enumerate(ours) if value != theirs[n]]
        for n in list(different):
            for each in DEVIATIONS:
                if field in each.fields and each.holds(case, n, ours[n], theirs[n]):
                    seen.add(each.reason)
                    different.remove(n)
                    break
        if different:
            n = different[0]
            yield (
                f"{case.name}: {field}: {len(different)} differ, first packet {n} "
                f"(frame {case.tcp[n]['number']}): {ours[n]}, tshark has {theirs[n]}"
            )


def _field(name: str) -> Callable[[Row], int]:
    return lambda row: row.number(name)


def _edge(name: str) -> Callable[[Row], int]:
    """An edge of the first SACK block; tshark gives it relative to the acknowledged half."""

    def read(row: Row) -> int:
        base = row.number("ack_raw") - row.number("ack")
        return (row.number(name) + base) % 2**32 if row[name] else 0

    return read


_FIELDS: dict[str, Callable[[Row], int]] = {
    "time_ns": Row.time_ns,
    "seq": _field("seq_raw"),
    "ack": _field("ack_raw"),
    "sack_left": _edge("sack_left"),
    "sack_right": _edge("sack_right"),
    **{
        name: _field(name)
        for name in (
            "frame_bytes",
            "payload_bytes",
            "flags",
            "window",
            "ip_id",
            "interface",
            "ts_value",
            "ts_echo",
        )
    },
}


def _end_differences(case: Case) -> Iterator[str]:
    """The first packet of which addresses, ports or marks differ."""
    for n, row in enumerate(case.tcp[: len(case.packets)]):
        flow, half = int(case.packets.flow[n]), int(case.packets.half[n])
        ends = case.flows.source(flow), case.flows.destination(flow)
        address = "ip" if row["ip_source"] else "ipv6"
        theirs = tuple(
            (row[f"{address}_{end}"].split(",")[0], row.number(f"{end}_port"))
            for end in ("source", "destination")
        )
        implied = {
            Mark.TIMESTAMPS: row["ts_echo"] != "",
            Mark.SACK: row["sack_right"] != "",
            Mark.MPTCP: row["mptcp"] != "",
            Mark.FIRST_FRAGMENT: row.number("ip_more") or row.number("ipv6_more"),
        }
        if case.marked(n, Mark.OPTIONS_CUT):  # tshark reads what there is of the last one
            implied = {mark: case.marked(n, mark) and value for mark, value in implied.items()}
        wrong = [m.name for m, value in implied.items() if case.marked(n, m) != bool(value)]
        if wrong or theirs != (ends[::-1] if half else ends):
            where = f"{case.name}: packet {n} (frame {row['number']})"
            yield f"{where}: {wrong}, {ends}, half {half}, tshark has {theirs}"
            return

"""Each check of the testbed holds on an honest run, and fails on the fault that it targets."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from capture_analysis.errors import AnalysisError
from support.dtm_host import EVENTS, arrivals, channel_run, host
from support.synthetic_run import (
    FORWARD,
    PAYLOAD_BYTES,
    REVERSE,
    SEGMENTS,
    START_NS,
    Table,
    edit_json,
    edit_manifest,
    moved,
    write_run,
)

from twoway.contract.judge import Verdict
from twoway.contract.network import netstat_file
from twoway.manifest import read_manifest
from twoway.measure.analysis import Analysis
from twoway.measure.fidelity import fidelity

SERVICE_US = {"data": 500, "ack": 50, "fin": 50}
SENT_BYTES = SEGMENTS["first"] * PAYLOAD_BYTES


def failing(folder: Path) -> dict[str, float]:
    """Return the checks that do not hold, with their values."""
    checks = fidelity(Analysis(folder))
    return {row.check: row.value or 0 for row in checks if row.verdict is not Verdict.PASS}


DEPARTURES = "forward: worst departure error, ns"
QUEUE = "forward: captures' queue against 4 kernel samples, packets"


def left_at(left_us: float, number: int = 11, **times_us: float) -> Table:
    """Return the forward timetable with another departure of a single segment."""
    return moved(FORWARD, "data", number, left_us=left_us, **times_us)


def test_honest_run(tmp_path: Path) -> None:
    """A run with consistent files passes every check, among them those of this list."""
    rows = fidelity(Analysis(write_run(tmp_path)))
    assert {(row.check, row.value, row.bound) for row in rows} >= {
        ("largest captured frame, bytes", 504, "at most 504"),
        ("packets dropped by the capture", 0, "0"),
        ("forward: worst departure error, ns", 0, "at most 1"),
        ("forward: captures' queue against 4 kernel samples, packets", 0, "0"),
        ("forward: drops in the captures minus the kernel's 1", 0, "0"),
        ("reverse: worst departure error, ns", 0, "at most 1"),
        ("reverse: captures' queue against 4 kernel samples, packets", 0, "0"),
        ("reverse: drops in the captures minus the kernel's 1", 0, "0"),
        ("first: payload in the capture minus the sink's 5850, bytes", 0, "0"),
        ("first: acks less data segments", 0, "-1..1"),
        ("first: largest compression factor", 10.0, "at most 10.50"),
        ("first: held back by its send buffer, us", 0, "at most 300"),
        ("first: held back by the receiver's window, us", 0, "at most 300"),
        ("second: payload in the capture minus the sink's 3600, bytes", 0, "0"),
        ("second: acks less data segments", 0, "-1..1"),
        ("second: held back by its send buffer, us", 0, "at most 300"),
        ("second: held back by the receiver's window, us", 0, "at most 300"),
    }
    assert {row.verdict for row in rows} == {Verdict.PASS}


EDITS: list[tuple[str, Callable[[Any], object], dict[str, float]]] = [
    (
        "manifest.json",
        lambda m: m["experiment"]["stack"].update(mtu_bytes=489),
        {"largest captured frame, bytes": 504},
    ),
    (
        "manifest.json",
        lambda m: m["capture_drops"].update({"r1-eth0": 2, "r2-eth0": 1}),
        {"packets dropped by the capture": 3},
    ),
    (
        "qdisc/r1-after.json",
        lambda qdiscs: qdiscs[1].update(drops=3),
        {"forward: drops in the captures minus the kernel's 3": -2},
    ),
    (
        "qdisc/r2-before.json",
        lambda qdiscs: qdiscs[1].update(drops=1),
        {"reverse: drops in the captures minus the kernel's 0": 1},
    ),
    (
        "traffic/first-sink.json",
        lambda said: said.update(bytes_received=5851),
        {"first: payload in the capture minus the sink's 5851, bytes": -1},
    ),
    (
        "traffic/first-source.json",
        lambda said: said.update(sndbuf_limited_us=1000),
        {"first: held back by its send buffer, us": 1000},
    ),
    (
        "traffic/second-source.json",
        lambda said: said.update(rwnd_limited_us=1000),
        {"second: held back by the receiver's window, us": 1000},
    ),
]


@pytest.mark.parametrize(("name", "change", "expected"), EDITS)
def test_false_claim_fails_its_own_check(
    tmp_path: Path, name: str, change: Callable[[Any], object], expected: dict[str, float]
) -> None:
    """A file that contradicts the captures fails its check, and only that one."""
    folder = write_run(tmp_path)
    edit_json(folder / name, change)
    assert failing(folder) == expected


@pytest.mark.parametrize(
    ("stack", "connection", "expected"),
    [
        ({"receive_window_packets": 8}, {}, {"first: held back by its send buffer, us": 1000}),
        ({"receive_buffer_bytes": 100_000}, {}, {"first: held back by its send buffer, us": 1000}),
        ({}, {"alpha_packets": 5}, {}),
    ],
)
def test_limits_that_the_experiment_asks_for(
    tmp_path: Path, stack: dict[str, int], connection: dict[str, int], expected: dict[str, float]
) -> None:
    """A limit that the file asks for fails no check: receive window or buffer, or FAST's alpha."""
    folder = write_run(tmp_path)
    limits = {"rwnd_limited_us": 1000, "sndbuf_limited_us": 1000}
    edit_json(folder / "traffic/first-source.json", lambda said: said.update(limits))
    edit_manifest(folder, lambda m: m["experiment"]["stack"].update(stack))
    edit_manifest(folder, lambda m: m["connections"][0].update(connection))
    assert failing(folder) == expected


@pytest.mark.parametrize(("count", "off"), [(3, 1), (6, 2)])
def test_kernel_counts_otherwise(tmp_path: Path, count: int, off: int) -> None:
    """A kernel sample that contradicts the captures' queue of 4 fails by the difference."""
    folder = write_run(tmp_path)
    path = folder / "sockets/queues.csv"
    path.write_text(path.read_text().replace("r1-eth1,4\n", f"r1-eth1,{count}\n"))
    assert failing(folder) == {QUEUE: off}


def sampled(folder: Path, time_us: float, read_us: float, count: int) -> Path:
    """Change the sample at which the forward queue was 2; the queue is 1 from 11500 us on."""
    path = folder / "sockets/queues.csv"
    lines = path.read_text().splitlines()
    row = next(i for i, line in enumerate(lines) if line.endswith("r1-eth1,2"))
    times = (START_NS + round(at * 1000) for at in (time_us, read_us))
    lines[row] = ",".join([*map(str, times), "r1-eth1", str(count)])
    path.write_text("\n".join([*lines, ""]))
    return folder


@pytest.mark.parametrize(
    ("time_us", "read_us", "count", "holds"),
    [
        (11_450, 11_499.999, 2, True),
        (11_450, 11_499.999, 1, False),
        (11_450, 11_500, 1, True),
        (11_500.001, 11_600, 1, True),
        (11_500.001, 11_600, 2, False),
        (11_500, 11_600, 2, True),
        (11_500, 11_600, 3, False),
    ],
)
def test_kernel_counts_between_its_stamps(
    tmp_path: Path, time_us: float, read_us: float, count: int, holds: bool
) -> None:
    """The kernel's count must be the queue's length at some ns between the sample's two stamps."""
    folder = sampled(write_run(tmp_path), time_us, read_us, count)
    assert (QUEUE not in failing(folder)) is holds


def test_queue_that_hands_over_at_the_start(tmp_path: Path) -> None:
    """If a queue hands packets over at transmission's start, the kernel counts one packet less."""
    begun = [
        c if c.left_us is None else dataclasses.replace(c, left_us=c.left_us - SERVICE_US[c.kind])
        for c in FORWARD
    ]
    folder = write_run(tmp_path, forward=begun)
    edit_manifest(folder, lambda m: m["queues"][0].update(leaves_at_start=True))
    path = folder / "sockets/queues.csv"
    path.write_text(
        path.read_text().replace("r1-eth1,4\n", "r1-eth1,3\n").replace("r1-eth1,2\n", "r1-eth1,1\n")
    )
    assert failing(folder) == {}
    assert Analysis(folder).queues["forward"].all_packets.packets.max() == 4


def test_no_kernel_samples(tmp_path: Path) -> None:
    """A check without anything to compare fails."""
    folder = write_run(tmp_path)
    path = folder / "sockets/queues.csv"
    path.write_text("".join(line for line in path.open() if "r2-eth1" not in line))
    assert failing(folder) == {"reverse: captures' queue against 0 kernel samples, packets": 0}


@pytest.mark.parametrize(
    ("left_us", "error_ns"),
    [(27_501, 1000), (27_500.001, 0), (27_499.999, 0), (27_500.002, 2), (27_499.998, 2)],
)
def test_departures_to_the_nanosecond(tmp_path: Path, left_us: float, error_ns: int) -> None:
    """Transmission times are cut to whole ns, so a departure may be off by 1 ns, but not by 2."""
    folder = write_run(tmp_path, forward=left_at(left_us))
    assert failing(folder) == ({DEPARTURES: error_ns} if error_ns else {})


@pytest.mark.parametrize(("left_us", "holds"), [(27_499, True), (27_498, False), (27_501, False)])
def test_departure_on_credit(tmp_path: Path, left_us: int, holds: bool) -> None:
    """With 1000 ns of credit a segment may leave 1000 ns early, but no later."""
    folder = write_run(tmp_path, forward=left_at(left_us))
    edit_manifest(folder, lambda m: m["queues"][0].update(credit_ns=1000))
    assert (DEPARTURES not in failing(folder)) is holds
    rows = {row.check: row.bound for row in fidelity(Analysis(folder))}
    assert rows[DEPARTURES] == "at most 1, or 1001 too early"


def test_acks_too_close(tmp_path: Path) -> None:
    """ACKs that arrive closer together than the link can carry them fail two checks."""
    folder = write_run(tmp_path, reverse=moved(REVERSE, "ack", 4, left_us=13_990))
    assert failing(folder) == {
        "reverse: worst departure error, ns": 10_000,
        "first: largest compression factor": 12.5,
    }


def test_missing_acks(tmp_path: Path) -> None:
    """Segments without their ACKs fail if every segment must have one and Linux merged none."""
    reverse = [c for c in REVERSE if c.entered_us not in (16_450, 16_950)]
    folder = write_run(tmp_path, reverse=reverse)
    assert failing(folder) == {"first: acks less data segments": -2}
    to = read_manifest(folder).connections[0].to
    (folder / "stack").mkdir(exist_ok=True)
    counters = folder / netstat_file(to)
    counters.write_text("TcpExt: TCPBacklogCoalesce\nTcpExt: 1\n")
    edit_manifest(folder, lambda found: found["files"].append(netstat_file(to)))
    assert failing(folder) == {}
    rows = {(row.check, row.value, row.bound) for row in fidelity(Analysis(folder))}
    assert (f"{to}: acks less data segments", -2, "-2..1") in rows


def test_one_missing_ack(tmp_path: Path) -> None:
    """One ACK may still be under way when the window ends."""
    rows = [c for c in REVERSE if c.entered_us != 16_450]
    assert failing(write_run(tmp_path, reverse=rows)) == {}


def test_delayed_acks_need_not_match(tmp_path: Path) -> None:
    """With delayed ACKs the number of ACKs is not checked."""
    rows = [c for c in REVERSE if c.entered_us not in (16_450, 16_950)]
    folder = write_run(tmp_path, reverse=rows)
    edit_manifest(folder, lambda m: m["experiment"]["stack"].update(acks="delayed"))
    assert failing(folder) == {}


def test_no_data(tmp_path: Path) -> None:
    """A connection without payload in its captures fails."""
    rows = [c for c in FORWARD if c.connection == "second"]
    checks = failing(write_run(tmp_path, forward=rows))
    assert checks["first: payload captured, bytes"] == 0


def test_hole_is_not_received(tmp_path: Path) -> None:
    """Bytes behind a missing one do not count as received by the sink."""
    rows = [c for c in FORWARD if c.entered_us != 18_500]
    got = failing(write_run(tmp_path, forward=rows))
    assert got["first: payload in the capture minus the sink's 5850, bytes"] == -8 * PAYLOAD_BYTES


@pytest.mark.parametrize(
    ("left_us", "error_ns"), [(32_000, None), (30_000, None), (29_999.999, 99_999)]
)
def test_departures_at_the_end_of_traffic(
    tmp_path: Path, left_us: float, error_ns: int | None
) -> None:
    """A departure at the end of traffic or later does not count, one a nanosecond before does."""
    late = left_at(left_us, 12, entered_us=29_400)
    found = failing(write_run(tmp_path, forward=late))
    assert found == ({} if error_ns is None else {DEPARTURES: error_ns})


def test_frames_of_one_capture(tmp_path: Path) -> None:
    """The check counts the largest frame of all captures, though some have ACKs only."""
    acks = [c for c in REVERSE if c.connection == "first"]
    folder = write_run(tmp_path, reverse=acks)
    edit_manifest(folder, lambda m: m["experiment"]["stack"].update(mtu_bytes=489))
    assert failing(folder)["largest captured frame, bytes"] == 504


@pytest.mark.parametrize("more", [0, 1, -1])
def test_frames_of_the_largest_size(tmp_path: Path, more: int) -> None:
    """A frame may be as large as the MTU and its Ethernet header, and no byte larger."""
    folder = write_run(tmp_path)
    edit_manifest(
        folder,
        lambda m: m["experiment"]["stack"].update(mtu_bytes=PAYLOAD_BYTES + 40 + more),
    )
    assert ("largest captured frame, bytes" in failing(folder)) == (more < 0)


def without_losses(folder: Path, window: int | None, *, paced: bool = False) -> Path:
    """Make the run without losses, with a fixed window for its first connection."""
    forward = [c for c in FORWARD if c.left_us is not None]
    folder = write_run(
        folder, forward=forward, reverse=[c for c in REVERSE if c.left_us is not None]
    )
    edit_manifest(
        folder,
        lambda m: m["connections"][0].update(window_packets=window, paced=paced),
    )
    return folder


@pytest.mark.parametrize("window", [4, 5, 6])
def test_window_in_flight(tmp_path: Path, window: int) -> None:
    """Five segments in flight fail the check for a window of four, and for one of six."""
    check = f"first: most segments in flight, of a window of {window}"
    rows = {row.check: row for row in fidelity(Analysis(without_losses(tmp_path, window)))}
    assert (rows[check].value, rows[check].bound) == (5, str(window))
    assert rows[check].verdict is (Verdict.PASS if window == 5 else Verdict.FAIL)


def test_windows_that_are_not_checked(tmp_path: Path) -> None:
    """Without a fixed window, with paced data, or after a loss there is no such check."""
    folders = [
        without_losses(tmp_path / "free", None),
        without_losses(tmp_path / "paced", 4, paced=True),
        write_run(tmp_path / "lost"),
    ]
    edit_manifest(folders[2], lambda m: m["connections"][0].update(window_packets=4))
    for folder in folders:
        assert not any("in flight" in row.check for row in fidelity(Analysis(folder)))


REALLOCATIONS = "forward: 7 reallocations against figure 1 fed with the captures"


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run with a DTM channel forward; its tests do not change it."""
    made = host(arrivals(), start_ns=START_NS)
    return channel_run(tmp_path_factory.mktemp("channel"), made)


def tampered(folder: Path, name: str, change: Callable[[str], str]) -> dict[str, float]:
    """Change one file of a run; return the checks that fail now and did not before."""
    before, path = failing(folder), folder / name
    honest = path.read_text(encoding="utf-8")
    try:
        path.write_text(change(honest), encoding="utf-8")
        found = failing(folder)
    finally:
        path.write_text(honest, encoding="utf-8")
    return {check: value for check, value in found.items() if before.get(check) != value}


def last_event(change: Callable[[list[str]], list[str]]) -> Callable[[str], str]:
    """Change the cells of the last recorded event; without cells it is left out."""

    def changed(text: str) -> str:
        *head, last = text.splitlines()
        cells = change(last.split(","))
        return "\n".join([*head, *([",".join(cells)] if cells else []), ""])

    return changed


def of_manifest(change: Callable[[Any], object]) -> Callable[[str], str]:
    """Change a manifest's text."""

    def changed(text: str) -> str:
        document = json.loads(text)
        change(document)
        return json.dumps(document)

    return changed


def test_honest_channel(channel: Path) -> None:
    """Departures and reallocations of a channel that follows the paper hold exactly."""
    rows = {row.check: row for row in fidelity(Analysis(channel))}
    row = rows[REALLOCATIONS]
    assert (row.value, row.bound, row.verdict) == (0, "0 differ", Verdict.PASS)
    assert rows[DEPARTURES].verdict is Verdict.PASS


@pytest.mark.parametrize(
    "changed",
    [
        *({"rate": {name: 2}} for name in ("shift_up", "shift_down")),
        {"rate": {"rounding": "up"}},
        {"rate": {"margin_slots": 1.25}},
        *({"rate": {name: 3}} for name in ("corridor_slots", "estimate_mbit")),
        *({"change_s": 0.2}, {"signalling_ms": 10}, {"max_slots": 9}),
    ],
)
def test_kernel_with_another_algorithm(channel: Path, changed: dict[str, Any]) -> None:
    """Decisions that follow another profile fail the check of decisions, and only that one."""

    def other(manifest: Any) -> None:
        dtm = manifest["profile"]["directions"]["forward"]["dtm"]
        dtm.update({**changed, "rate": {**dtm["rate"], **changed.get("rate", {})}})

    assert set(tampered(channel, "manifest.json", of_manifest(other))) == {REALLOCATIONS}


def test_reallocation_a_nanosecond_late(channel: Path) -> None:
    """In virtual time a decision 1 ns late counts twice: an unwanted one and a missing one."""
    late = last_event(lambda cells: [str(int(cells[0]) + 1), *cells[1:]])
    assert tampered(channel, EVENTS, late)[REALLOCATIONS] == 2


def test_reallocation_that_was_not_reported(channel: Path) -> None:
    """A decision that is missing fails the check."""
    found = tampered(channel, EVENTS, last_event(lambda _: []))
    assert found[REALLOCATIONS.replace("7", "6")] == 1


def test_reallocation_at_the_end_of_traffic(channel: Path) -> None:
    """A decision at the end of traffic is neither demanded nor counted."""
    last_ns = int((channel / EVENTS).read_text(encoding="utf-8").splitlines()[-1].split(",")[0])
    earlier = of_manifest(lambda m: m["clock"].update(stop_ns=last_ns))
    found = tampered(channel, "manifest.json", earlier)
    assert not any("reallocations" in check for check in found)


def test_departures_against_other_slots(channel: Path) -> None:
    """Departures fail if the kernel reports other slots than it used."""
    other = last_event(lambda cells: [*cells[:5], str(int(cells[5]) + 1), *cells[6:]])
    assert DEPARTURES in tampered(channel, EVENTS, other)


def test_garbled_kernel_counters(tmp_path: Path) -> None:
    """A counter file that is not JSON is an error that names it."""
    folder = write_run(tmp_path)
    broken = next(iter(sorted((folder / "qdisc").glob("*.json"))))
    broken.write_text("{")
    with pytest.raises(AnalysisError, match=broken.name):
        fidelity(Analysis(folder))

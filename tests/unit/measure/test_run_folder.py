"""A run's folder: refusals and their sentences, and packets by lane."""

import errno
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import zstandard
from capture_analysis.columns import Keyed
from capture_analysis.errors import AnalysisError
from conversation import packets
from support.synthetic_run import edit_manifest, write_run

from twoway.measure import run_folder, shares_by_second, tables
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.measure.lanes import Lanes, PacketFile, numbers_of
from twoway.measure.run_folder import Run

MANY = "a,b\n" + "1,2\n" * 20000


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Make a run, whose folder is `tmp_path`."""
    return Run(write_run(tmp_path))


@pytest.mark.parametrize(
    "names",
    [["pcap/r1-eth1.pcap"], ["qdisc/r2-after.json"], ["pcap/h1-eth0.pcap", "pcap/h2-eth0.pcap"]],
)
def test_missing_files(tmp_path: Path, names: list[str]) -> None:
    """Files that the manifest lists and the folder lacks are one error that names all."""
    folder = write_run(tmp_path)
    for name in names:
        (folder / name).unlink()
    complaint = f"missing or changed since the run: {', '.join(names)}$"
    with pytest.raises(AnalysisError, match=complaint):
        Run(folder)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", r"no manifest\.json: not a finished run$"),
        ("{", r"manifest\.json: not JSON: "),
        ("[]", r"manifest\.json: not a JSON object$"),
        ('{"schema": 2}', r"manifest\.json: not of schema 4 but 2: another version of twoway"),
        ('{"schema": 4, "run": 3}', r"manifest\.json: git: Field required; .*run: Input should be"),
    ],
)
def test_unreadable_manifest(tmp_path: Path, content: str, complaint: str) -> None:
    """A manifest that is absent, truncated, or of another schema is refused with the reason."""
    if content:
        (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(AnalysisError, match=complaint):
        Run(tmp_path)


def test_captures_are_compressed_or_not(tmp_path: Path) -> None:
    """A run with compressed captures has the same metrics."""
    plain, packed = write_run(tmp_path / "plain"), write_run(tmp_path / "packed")
    captures = sorted((packed / "pcap").iterdir())
    for path in captures:
        path.with_suffix(".pcap.zst").write_bytes(zstandard.compress(path.read_bytes()))
        path.unlink()
    names = {f"pcap/{path.name}": f"pcap/{path.name}.zst" for path in captures}
    files = [names.get(name, name) for name in Run(plain).manifest.files]
    edit_manifest(packed, lambda manifest: manifest.update(files=files))
    assert compute(Analysis(packed)) == compute(Analysis(plain))


def test_damaged_capture(tmp_path: Path) -> None:
    """A capture truncated in the middle is an error that names it, not fewer packets."""
    folder = write_run(tmp_path)
    path = folder / "pcap/r2-eth1.pcap"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(AnalysisError, match=r"r2-eth1\.pcap: ends inside record"):
        _ = Analysis(folder).queues


def test_capture_in_both_directions_at_a_queue(tmp_path: Path) -> None:
    """A tap with both directions at a queue is refused, because it hides what entered."""
    folder = write_run(tmp_path)
    edit_manifest(folder, lambda m: m["captures"].update({"r1-eth0": "inout"}))
    with pytest.raises(AnalysisError, match="r1-eth0: captured in both directions, by an older"):
        _ = Analysis(folder).queues


def test_connection_of_unknown_direction(tmp_path: Path) -> None:
    """A connection whose ACKs pass no known queue is an error that names both."""
    folder = write_run(tmp_path)
    edit_manifest(folder, lambda m: m["queues"].pop())
    with pytest.raises(AnalysisError, match='first: no queue has direction "reverse"'):
        _ = Analysis(folder).connections


@pytest.mark.parametrize("times", [(9, 8, 10), (0, 10, 10), (0, 11, 10)])
def test_times_that_do_not_follow(tmp_path: Path, times: tuple[int, int, int]) -> None:
    """A manifest whose warm-up ends before the start, or not before the end, is refused."""
    folder = write_run(tmp_path)
    clock = dict(zip(("start_ns", "steady_ns", "stop_ns"), times, strict=True))
    edit_manifest(folder, lambda manifest: manifest.update(clock=clock))
    with pytest.raises(AnalysisError, match=r"manifest\.json: .*must follow each other"):
        Analysis(folder)


def test_table_preamble_is_skipped(run: Run, tmp_path: Path) -> None:
    """A table's preamble is skipped; a table without rows still has its columns."""
    (tmp_path / "full.csv").write_text("# clock: x\na,b\n1,2\n3,4\n")
    (tmp_path / "bare.csv").write_text("# clock: x\na,b\n")
    assert _columns(run, "full.csv", "a", "b") == {"a": [1, 3], "b": [2, 4]}
    assert _columns(run, "bare.csv", "a", "b") == {"a": [], "b": []}


def _columns(
    run: Run, name: str, *columns: str, words: Mapping[str, Sequence[str]] | None = None
) -> dict[str, list[int]]:
    found = run.numbers(name, *columns, words=words or {})
    return {title: column.tolist() for title, column in found.items()}


def test_words_of_a_table(run: Run, tmp_path: Path) -> None:
    """Words are read as their places among the known words, unknown ones as -1."""
    (tmp_path / "x.csv").write_text("a,b,c\n1,r1,0\n2,r3,0\n3,r2,0\n")
    found = _columns(run, "x.csv", "a", "b", words={"b": ["r1", "r2"]})
    assert found == {"a": [1, 2, 3], "b": [0, -1, 1]}
    (tmp_path / "x.csv").write_text("a,b,c\n1,r1,2\n2,r3\n")
    with pytest.raises(AnalysisError, match=r"x\.csv: row 2 has 2 of 3 columns$"):
        _columns(run, "x.csv", "a", "b", words={"b": ["r1", "r2"]})


@pytest.mark.parametrize(
    ("content", "columns", "complaint"),
    [
        ("# clock: x\na,b\n1,2\n", "acd", "no column c, d: written by another version"),
        ("", "acd", "no column a, c, d: "),
        ("a,c,d\n1,2,3\n4,5\n", "acd", "row 2 has 2 of 3 columns$"),
        *((f"a,b\n1,2\n3,{value}\n", "b", "row 2: ") for value in ("", "1.5", "cwnd", 2**63)),
        (f"{MANY}3\n", "a", "has 1 of 2 columns"),
        (f"{MANY}3,4,5\n", "a", "has 3 of 2 columns"),
        (f"{MANY}3,\n", "a", "20001: invalid"),
        (f"{MANY}3,4_5\n", "a", "from row 16385"),
    ],
    ids=lambda each: each[:16],
)
def test_unusable_table(
    run: Run, tmp_path: Path, content: str, columns: str, complaint: str
) -> None:
    """Without a column, or a whole number of 64 bits in one, the error names file and row."""
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(AnalysisError, match=rf"x\.csv: .*{complaint}"):
        run.numbers("x.csv", *columns)


def test_data_and_acks_told_apart_at_an_interface(run: Run) -> None:
    """At one interface a connection's data and its ACKs are separate."""
    first, second = run.connections
    data = run.packets_between("h1-eth0", first, forward=True)
    assert data.payload_bytes.tolist() == [450] * 14
    assert len(run.packets_between("h1-eth0", first, forward=False)) == 13  # 12 ACKs and a FIN
    assert run.packets_between("h1-eth0", second, forward=True).payload_bytes.tolist() == [450] * 8
    assert len(run.packets_between("h1-eth0", second, forward=False)) == 8


def test_columns_read_as_whole_numbers(run: Run, tmp_path: Path) -> None:
    """A table's columns are read as whole numbers, exactly."""
    (tmp_path / "x.csv").write_text(f"# clock: x\na,b,c\n{2**62 + 1},x,-1\n2,y,3\n")
    found = run.numbers("x.csv", "c", "a")
    assert {name: column.tolist() for name, column in found.items()} == {
        "c": [-1, 3],
        "a": [2**62 + 1, 2],
    }


def test_selections_of_one_connection_are_kept(run: Run) -> None:
    """Selected packets are kept until another connection's packets are selected."""
    first, second = run.connections
    data, acks = (
        run.packets_between("h1-eth0", first, forward=forward) for forward in (True, False)
    )
    assert run.packets_between("h1-eth0", first, forward=True) is data
    assert run.packets_between("h1-eth0", first, forward=False) is acks
    run.packets_between("h1-eth0", second, forward=True)
    again = run.packets_between("h1-eth0", first, forward=True)
    assert again is not data
    assert again.seq.tolist() == data.seq.tolist()


def test_captures_at_routers_are_freed(tmp_path: Path) -> None:
    """Captures of routers are freed once queues are known, and still count as captured."""
    analysis = Analysis(write_run(tmp_path))
    seen = [analysis.run.whole_capture(each) for each in analysis.run.manifest.captures]
    _ = analysis.queues
    for interface in (each for each in analysis.run.manifest.captures if each[0] == "r"):
        with pytest.raises(AnalysisError, match=f"captures: no {interface}"):
            analysis.run.capture(interface)
    assert len(analysis.run.packets_between("h1-eth0", analysis.run.connections[0], forward=True))
    assert analysis.run.last_seen_ns == max(each.time_ns.max() for each in seen)
    assert analysis.run.largest_frame_bytes == max(each.frame_bytes.max() for each in seen)


def test_a_whole_capture_has_every_column(run: Run) -> None:
    """Columns that no metric uses are 0, except in a capture that is read once more."""
    whole, seen = run.whole_capture("r1-eth0"), run.capture("r1-eth0")
    assert (whole.flags > 0).all()
    assert not seen.flags.any()
    assert seen.key().tolist() == whole.key().tolist()
    for name in ("time_ns", "frame_bytes", "payload_bytes", "flow", "seq"):
        assert getattr(seen, name).tolist() == getattr(whole, name).tolist()


def test_a_connection_is_measured_once_until_another_is(tmp_path: Path) -> None:
    """Results of a connection are kept until another connection is measured."""
    first, second = Analysis(write_run(tmp_path)).connections.values()
    window = first.window
    assert first.window is window
    assert second.window is not window
    assert first.window is not window


def test_connections_of_all_captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are limited for a run, not only for each of its captures."""
    monkeypatch.setattr(run_folder, "MOST_CONNECTIONS", 2 * 6 - 1)
    run = Run(write_run(tmp_path))
    with pytest.raises(AnalysisError, match="more than 11 connections in all captures together"):
        _ = run.flows


def test_tables_and_seconds_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table has a limit of rows, and a run one of seconds of all its connections."""
    folder = write_run(tmp_path)
    monkeypatch.setattr(tables, "MOST_ROWS", 3)
    with pytest.raises(AnalysisError, match=r"tcp-info\.csv: more than 3 rows$"):
        _ = Analysis(folder).socket_samples
    monkeypatch.setattr(shares_by_second, "_MOST_SECONDS", 0)
    with pytest.raises(AnalysisError, match=r"more than 0 seconds of all connections$"):
        _ = Analysis(folder).seconds


# Rows of packets by lane, found once for all connections; and packets by lane, in a file.


@pytest.mark.parametrize("highest", [3, 1 << 17])
def test_rows_of_some_connections(highest: int) -> None:
    """The rows found for some lanes equal those of a search through all rows."""
    numbers = np.random.default_rng(1).integers(0, 4, 500).astype(np.uint32)
    numbers[numbers == 3] = highest
    found = Lanes(numbers)
    for some in ([0], [2], [highest], [0, highest], [1, 2, highest], []):
        assert found.rows(*some).tolist() == np.flatnonzero(np.isin(numbers, some)).tolist()


def test_unknown_connection_has_no_rows() -> None:
    """A connection that is not in a capture has no rows there."""
    assert Lanes(np.array([1, 0], dtype=np.uint32)).rows(7).tolist() == []
    assert Lanes(np.zeros(0, dtype=np.uint32)).rows(0).tolist() == []


def test_acks_have_a_number_of_their_own() -> None:
    """Data and ACKs of one connection are two lanes, and no two connections share one."""
    columns = {"flow": [0, 0, 1, 1], "half": [0, 1, 0, 1]}
    both = packets(**columns)
    assert numbers_of(both).tolist() == [0, 1, 2, 3]


# Packets of three connections, and their lanes.
SEEN = packets(time_ns=[10, 20, 30, 40, 50], flow=[0, 2, 1, 0, 1], seq=[5, 6, 7, 8, 1 << 31])
NUMBERS = [0, 4, 2, 0, 2]


@pytest.mark.parametrize("in_memory_bytes", [1, 1 << 20])
def test_packets_from_a_file(monkeypatch: pytest.MonkeyPatch, in_memory_bytes: int) -> None:
    """Packets of one lane or several are those of the capture, in time order, on disk or not."""
    monkeypatch.setattr(f"{PacketFile.__module__}._IN_MEMORY_BYTES", in_memory_bytes)
    keyed = Keyed.from_packets(SEEN, ["window"])
    stored = PacketFile()
    stored.add("other", SEEN.where(np.array([1, 3])))
    assert stored.packets_of("other", 4).seq.tolist() == [6]
    stored.add("this", keyed)
    assert "this" in stored
    assert "that" not in stored
    for some in ([0], [4], [2, 0], [0, 2, 4], [1], [9], []):
        there, here = stored.packets_of("this", *some), keyed.where(np.isin(NUMBERS, some))
        assert len(there) == len(here)
        for name in ("time_ns", "seq", "flow", "window"):
            assert getattr(there, name).dtype == np.int64
            assert getattr(there, name).tolist() == getattr(here, name).tolist()
        assert there.key().tolist() == here.key().tolist()
    assert stored.packets_of("other", 0).key().tolist() == [SEEN.key()[3]]


def test_a_full_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """If there is no room for a capture, the error names the folder and the way to another."""

    class Full(BytesIO):
        def write(self, _content: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(f"{PacketFile.__module__}.SpooledTemporaryFile", lambda _most: Full())
    with pytest.raises(AnalysisError, match=r": No space left on device\n\nhint: TMPDIR names"):
        PacketFile().add("this", SEEN)

"""Packets as tables and columns, and the same numbers on one core, on several, and on Dask's."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import capture_analysis
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from capture_analysis.cli import main
from capture_analysis.errors import AnalysisError
from capture_analysis.export import export
from capture_analysis.one_capture.document import analyse, document
from capture_analysis.one_capture.single import NOTHING
from capture_analysis.parallel_analysis import captures_in, dask, submit
from capture_analysis.reading.capture import Capture
from capture_analysis.tracking import Kind
from traffic_generator import Traffic, write

# Packets as Parquet, CSV, Arrow tables and numpy columns.


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a capture of more packets than a chunk has, of two connections."""
    path = tmp_path_factory.mktemp("capture") / "near.pcap"
    write(Traffic(flows=2, loss=0.01, round_packets=50_000), 70_000, {"near": path})
    return path


def test_read_columns_has_every_packet(capture: Path) -> None:
    """`read_columns` has each packet with its fields and its role."""
    columns = capture_analysis.read_columns(capture)
    assert {len(column) for column in columns.values()} == {70_000}
    for kind, new_bytes in ((Kind.NEW_DATA, 1448), (Kind.RETRANSMISSION, 0)):
        assert set(columns["new_bytes"][columns["kind"] == kind]) == {new_bytes}
    assert (np.diff(columns["time_ns"]) >= 0).all()
    assert columns["frame"].tolist() == list(range(1, 70_001))


def test_read_table_has_addresses_and_nulls(capture: Path) -> None:
    """`read_table` has each packet with addresses, and null for a field that it lacks."""
    table, columns = capture_analysis.read_table(capture), capture_analysis.read_columns(capture)
    assert table["seq"].to_pylist() == columns["seq"].tolist()
    assert set(table["kind"].to_pylist()) >= {"new_data", "ack", "retransmission"}
    first = table.slice(0, 1).to_pylist()[0]
    assert first["rtt_ns"] is None
    assert first["sack_left"] is None
    assert first["ts_value"] is not None
    back = table.filter(pa.compute.equal(columns["half"], 1)).to_pylist()[0]
    mine = table.filter(pa.compute.equal(columns["flow"], back["flow"])).to_pylist()[0]
    assert (back["sender"], back["sender_port"]) == (mine["receiver"], mine["receiver_port"])


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_both_formats_hold_the_table(capture: Path, tmp_path: Path, ending: str) -> None:
    """Parquet and CSV files hold the same table."""
    target = tmp_path / f"packets{ending}"
    assert main(["export", str(capture), str(target)]) == 0
    read = pa.parquet.read_table(target) if ending == ".parquet" else pa.csv.read_csv(target)
    table = capture_analysis.read_table(capture)
    assert read.column_names == table.column_names
    assert read.cast(table.schema).equals(table)
    assert list(tmp_path.iterdir()) == [target]


def test_unknown_format(capture: Path, tmp_path: Path) -> None:
    """A name with another ending is refused before anything is read."""
    with pytest.raises(AnalysisError, match=r'must end in \.parquet or \.csv, got "\.xlsx"'):
        export(Capture(capture), tmp_path / "packets.xlsx")


def test_nothing_half_written(tmp_path: Path) -> None:
    """If a capture cannot be read, existing files stay as they were."""
    bad, target = tmp_path / "bad.pcap", tmp_path / "packets.csv"
    bad.write_bytes(b"these are not the bytes of a capture")
    target.write_text("older")
    with pytest.raises(AnalysisError):
        export(Capture(bad), target)
    assert target.read_text() == "older"
    assert sorted(tmp_path.iterdir()) == [bad, target]


# The same numbers on one core, on several, and on Dask's workers.


@pytest.fixture(scope="module")
def large_capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a capture of two-way traffic of several connections, with losses."""
    path = tmp_path_factory.mktemp("large") / "near.pcap"
    write(Traffic(flows=7, loss=0.01, round_packets=10_000), 30_000, {"near": path})
    return path


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 2, 3, 11])
def test_parts_make_the_whole(large_capture: Path, parts: int) -> None:
    """Connections measured in parts and merged give exactly the whole's result."""
    with ThreadPoolExecutor(2) as pool:
        merged = document(submit(pool, large_capture, parts, NOTHING).result())
    assert json.dumps(merged) == json.dumps(analyse(large_capture))


def metrics(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    """Return status, document and errors of `metrics`."""
    status = main(["metrics", *arguments])
    out, err = capsys.readouterr()
    return status, json.loads(out), err


@pytest.mark.slow
def test_folder_gives_each_capture_its_document(
    large_capture: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A folder gives the document of each capture, in the order of their names.

    A broken capture is named, does not stop the others, and makes the status 2.
    """
    (tmp_path / "below").mkdir()
    good = [tmp_path / "b.pcap", tmp_path / "below/a.pcap"]
    for path in good:
        path.write_bytes(large_capture.read_bytes())
    (tmp_path / "c.pcap").write_bytes(b"no capture at all, but long enough to be one")
    (tmp_path / "notes.txt").write_text("not looked at")
    status, found, complaints = metrics(capsys, str(tmp_path), "--workers", "2")
    assert status == 2
    assert f"{tmp_path}/c.pcap" in complaints
    assert [each["capture"]["path"] for each in found["captures"]] == [
        *map(str, good),
        str(tmp_path / "c.pcap"),
    ]
    assert found["captures"][:2] == [json.loads(json.dumps(analyse(path))) for path in good]
    assert set(found["captures"][2]) == {"schema", "capture", "error"}


@pytest.mark.slow
def test_scheduler_gives_the_same_result(
    large_capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Workers of a scheduler give the same result."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        status, found, _ = metrics(capsys, str(large_capture.parent), "--scheduler", address)
    assert status == 0
    assert found["captures"] == [json.loads(json.dumps(analyse(large_capture)))]


@pytest.mark.slow
def test_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler's address without an answer is an error that names it."""
    import distributed

    soon: Any = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda at, **_: soon(at, timeout="1s"))
    with (
        pytest.raises(AnalysisError, match=r"--scheduler tcp://127\.0\.0\.1:9"),
        dask(1, "tcp://127.0.0.1:9"),
    ):
        pass


@pytest.mark.slow
def test_captures_in(tmp_path: Path) -> None:
    """Captures are found by their endings, compressed or not, in subfolders too."""
    names = ["a.pcap", "b.pcapng.gz", "d/c.cap.zst", "e.pcap.xz"]
    (tmp_path / "d").mkdir()
    for name in [*names, "f.pcap.bak", "g.gz"]:
        (tmp_path / name).touch()
    assert captures_in(tmp_path) == [tmp_path / name for name in sorted(names)]

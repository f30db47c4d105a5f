"""Packets as Parquet, CSV, Arrow tables and numpy columns."""

from pathlib import Path

import capture_analysis
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from capture_analysis.cli import main
from capture_analysis.errors import AnalysisError
from capture_analysis.export import export
from capture_analysis.reading.capture import Capture
from capture_analysis.tracking import Kind
from traffic_generator import Traffic, write


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

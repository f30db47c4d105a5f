"""The same numbers on one core, on several, and on Dask's workers."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from capture_analysis.cli import main
from capture_analysis.errors import AnalysisError
from capture_analysis.one_capture.document import analyse, document
from capture_analysis.one_capture.single import NOTHING
from capture_analysis.scale import captures_in, dask, submit
from traffic_generator import Traffic, write

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a capture of two-way traffic of several connections, with losses."""
    path = tmp_path_factory.mktemp("capture") / "near.pcap"
    write(Traffic(flows=7, loss=0.01, round_packets=10_000), 30_000, {"near": path})
    return path


@pytest.mark.parametrize("parts", [1, 2, 3, 11])
def test_parts_make_the_whole(capture: Path, parts: int) -> None:
    """Connections measured in parts and merged give exactly the whole's result."""
    with ThreadPoolExecutor(2) as pool:
        merged = document(submit(pool, capture, parts, NOTHING).result())
    assert json.dumps(merged) == json.dumps(analyse(capture))


def metrics(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    """Return status, document and errors of `metrics`."""
    status = main(["metrics", *arguments])
    out, err = capsys.readouterr()
    return status, json.loads(out), err


def test_folder_gives_each_capture_its_document(
    capture: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A folder gives the document of each capture, in the order of their names.

    A broken capture is named, does not stop the others, and makes the status 2.
    """
    (tmp_path / "below").mkdir()
    good = [tmp_path / "b.pcap", tmp_path / "below/a.pcap"]
    for path in good:
        path.write_bytes(capture.read_bytes())
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


def test_scheduler_gives_the_same_result(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Workers of a scheduler give the same result."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        status, found, _ = metrics(capsys, str(capture.parent), "--scheduler", address)
    assert status == 0
    assert found["captures"] == [json.loads(json.dumps(analyse(capture)))]


def test_no_scheduler() -> None:
    """A scheduler's address without an answer is an error that names it."""
    with (
        pytest.raises(AnalysisError, match=r"--scheduler tcp://127\.0\.0\.1:9"),
        dask(1, "tcp://127.0.0.1:9"),
    ):
        pass


def test_captures_in(tmp_path: Path) -> None:
    """Captures are found by their endings, compressed or not, in subfolders too."""
    names = ["a.pcap", "b.pcapng.gz", "d/c.cap.zst", "e.pcap.xz"]
    (tmp_path / "d").mkdir()
    for name in [*names, "f.pcap.bak", "g.gz"]:
        (tmp_path / name).touch()
    assert captures_in(tmp_path) == [tmp_path / name for name in sorted(names)]

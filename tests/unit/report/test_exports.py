"""`twoway export`: the series of the run made by hand, in each format."""

import csv
import shutil
from pathlib import Path
from typing import Any

import pytest
from flent import resultset
from support.synthetic_run import PAYLOAD_BYTES, edit_manifest, write_run
from support.warm_command import twoway

from twoway.report.export import FORMATS, export_run

pytestmark = pytest.mark.slow

# The page averages goodput over a cycle of the queues; SEGMENTS are each host's new ones in a
# cycle, in parts where an interval ends within their transmission.
INTERVAL_MS = 6.5
SEGMENTS: dict[str, list[float]] = {"first": [1, 4, 4, 2], "second": [1, 1.2, 3.8, 1]}
MBIT = {
    name: [each * PAYLOAD_BYTES * 8 / (INTERVAL_MS * 1e3) for each in segments]
    for name, segments in SEGMENTS.items()
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run's folder."""
    return write_run(tmp_path_factory.mktemp("run"))


def test_csv_has_a_row_per_point(run: Path) -> None:
    """The CSV has a row for each point, in order, with its connection, quantity and unit."""
    with export_run(run, "csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    units: dict[str, str] = {}
    series: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in rows:
        units[row["quantity"]] = row["unit"]
        points = series.setdefault((row["connection"], row["quantity"]), [])
        points.append((float(row["time_s"]), float(row["value"])))
    assert list(units) == ["goodput", "cwnd", "ssthresh", "smoothed_rtt"]
    assert list(units.values()) == ["Mbit/s", "segments", "segments", "ms"]
    starts_s = (0, 0.0065, 0.013, 0.0195)
    for name, mbit in MBIT.items():
        times_s, goodputs = zip(*series.pop((name, "goodput")), strict=True)
        assert times_s == starts_s
        assert goodputs == pytest.approx(mbit, rel=1e-3)
        assert series.pop((name, "cwnd")) == [(0, 10), (0.019, 5)]
        assert series.pop((name, "ssthresh")) == [(0.019, 5)]
        assert series.pop((name, "smoothed_rtt")) == [(0, 1.5), (0.019, 2.5)]
    assert not series


def test_flent_reads_its_file(run: Path) -> None:
    """Flent's reader finds each connection's goodput, the sums, and windows and round trips."""
    found = resultset.load(str(export_run(run, "flent")))
    assert found.meta("NAME") == "rrul_be_nflows"
    assert found.meta("TITLE") == "by-hand"
    assert found.meta("TEST_PARAMETERS") == {"download_streams": 1, "upload_streams": 1}
    assert found.x_values == pytest.approx([0.0065, 0.013, 0.0195, 0.026])
    for direction, name in (("download", "first"), ("upload", "second")):
        series = f"TCP {direction} BE::1"
        assert found.series_meta(series, "CONNECTION") == name
        for each in (series, f"TCP {direction} sum", f"TCP {direction} avg"):
            assert found.series(each) == pytest.approx(MBIT[name], rel=1e-3)
        goodputs = [value for _, value in found.raw_series(series)]
        assert goodputs == found.series(series)
        times_s, windows = zip(*found.raw_series(series, raw_key="tcp_cwnd"), strict=True)
        # seconds since 1970, with a double's precision
        assert times_s == pytest.approx((0, 0.019), abs=1e-6)
        assert windows == (10, 5)
        assert [rtt for _, rtt in found.raw_series(series, raw_key="tcp_rtt")] == [1.5, 2.5]
    both = [sum(pair) for pair in zip(*MBIT.values(), strict=True)]
    assert found.series("TCP totals") == pytest.approx(both, rel=1e-3)


def test_flent_without_uploads(tmp_path: Path) -> None:
    """A run with downloads only has no series of uploads."""
    folder = write_run(tmp_path)
    edit_manifest(folder, lambda manifest: manifest["connections"].pop())
    found = resultset.load(str(export_run(folder, "flent")))
    names = ["TCP download BE::1", "TCP download sum", "TCP download avg", "TCP totals"]
    assert found.series_names == names


def test_same_run_exports_same_bytes(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each format gives equal bytes for one run at any time."""
    made = {name: export_run(run, name).read_bytes() for name in FORMATS}
    monkeypatch.setattr("time.time", lambda: 1e9)
    for name, form in FORMATS.items():
        again = export_run(run, name, tmp_path / f"again{form.suffix}")
        assert again.read_bytes() == made[name], name


def test_export_prints_the_file_path(run: Path, tmp_path: Path) -> None:
    """The file's path is printed; the file is in the run's folder unless --to is given."""
    for where, more in (
        (run / "by-hand.csv", ()),
        (tmp_path / "a.csv", ("--to", tmp_path / "a.csv")),
    ):
        done = twoway("export", run, "--format", "csv", *more)
        assert (done.returncode, done.stdout) == (0, f"{where}\n"), done.stderr
        assert where.is_file()


@pytest.mark.parametrize("name", ["out", "out.flent", "out.flent.gz"])
def test_a_target_gets_its_suffix(name: str, run: Path, tmp_path: Path) -> None:
    """A target without the format's whole suffix gets it, and is printed."""
    done = twoway("export", run, "--format", "flent", "--to", tmp_path / name)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/out.flent.gz\n"), done.stderr
    assert (tmp_path / "out.flent.gz").is_file()


@pytest.mark.parametrize(("target", "sentence"), [("gone/series.flent.gz", "gone: no such folder")])
def test_a_target_that_cannot_be(target: str, sentence: str, run: Path, tmp_path: Path) -> None:
    """A target in no folder is refused, and nothing is written."""
    done = twoway("export", run, "--format", "flent", "--to", tmp_path / target)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_run_without_connections(tmp_path: Path) -> None:
    """A run that declares no flow has no series, and the error says so."""
    folder = write_run(tmp_path)

    def without(manifest: dict[str, Any]) -> None:
        manifest["connections"] = []

    edit_manifest(folder, without)
    done = twoway("export", folder, "--format", "csv")
    assert done.returncode == 2
    assert f"{folder}: flows: an export has the series of each connection" in done.stderr
    assert not (folder / "by-hand.csv").exists()


def test_a_manifest_does_not_choose_the_place(run: Path, tmp_path: Path) -> None:
    """An export of a run whose manifest names a file elsewhere writes nothing, and says why."""
    mine = tmp_path / "results/x/run"
    shutil.copytree(run, mine)
    edit_manifest(mine, lambda it: it["experiment"].update(id="../../elsewhere"))
    done = twoway("export", mine)
    assert done.returncode == 1
    assert f"{mine}/manifest.json: experiment.id: String should match pattern" in done.stderr
    assert [*tmp_path.rglob("elsewhere*")] == []

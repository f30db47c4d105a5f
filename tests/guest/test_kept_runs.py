"""Runs of tests are kept by identity: found again, copied whole, measured anew, and bounded."""

import os
from pathlib import Path

import pytest
from support import runs as kept_runs
from support.running import SMALL, measure, write_experiment
from support.runs import carry_out, remove_old_runs

from twoway.manifest import read_manifest
from twoway.runs.points import load_point

SHORT = {**SMALL, "duration_s": 0.3, "warm_up_s": 0.1}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep runs in a folder of the test."""
    monkeypatch.setattr(kept_runs, "KEPT", tmp_path / "kept")
    return tmp_path / "kept"


def _files(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*.*")}


@pytest.mark.usefixtures("guest")
def test_a_run_is_found_by_its_identity(tmp_path: Path, own_cache: Path) -> None:
    """A second request copies the first one's run; another window, or changed code, runs again."""
    path = write_experiment(tmp_path, SHORT)
    first = carry_out(path, tmp_path / "first")
    made = _files(first)
    (first / "sockets/queues.csv").write_text("a test may change its own run")
    again = carry_out(path, tmp_path / "again")
    assert again.name == first.name
    assert (tmp_path / "again/latest").resolve() == again
    assert _files(again) == made
    assert len([*own_cache.iterdir()]) == 1
    flows = [{**flow, "window_packets": 5} for flow in SHORT["flows"]]
    carry_out(write_experiment(tmp_path, {**SHORT, "flows": flows}), tmp_path / "other")
    assert len([*own_cache.iterdir()]) == 2
    for run in own_cache.glob("*/small/2*"):  # as if an older code had collected it
        run.parents[1].rename(own_cache / f"before-{run.name}")
    assert carry_out(load_point(str(path)), tmp_path / "anew").name != first.name


@pytest.mark.usefixtures("guest")
def test_a_kept_run_is_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics of a kept run come from the code of now, and its claims from the file of now."""
    path = write_experiment(tmp_path, SHORT)
    assert measure(path, tmp_path / "one")["metrics"]["efficiency.left"]["value"] > 0
    monkeypatch.setattr("twoway.report.report.compute", lambda _: pytest.fail("measured"))
    with pytest.raises(pytest.fail.Exception, match="measured"):
        measure(write_experiment(tmp_path, {**SHORT, "title": "Another"}), tmp_path / "two")
    (run,) = (tmp_path / "two/small").iterdir()
    assert read_manifest(run).experiment.title == "Another"


def test_the_kept_runs_take_bounded_space(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that were not used for the longest time are removed until the others fit."""
    monkeypatch.setattr(kept_runs, "MOST_BYTES", 3 << 20)
    for age, name in enumerate("abcd"):
        (own_cache / name).mkdir(parents=True)
        (own_cache / name / "capture").write_bytes(bytes(1 << 20))
        os.utime(own_cache / name, (10**9 - age, 10**9 - age))
    remove_old_runs()
    assert sorted(path.name for path in own_cache.iterdir()) == ["a", "b"]


def test_other_packages_may_come_and_go(tmp_path: Path) -> None:
    """Only packages that programs of guests come from, or depend on, decide what is kept."""

    def hashed(*packages: tuple[str, str, str]) -> bytes:
        status = tmp_path / str(len([*tmp_path.iterdir()]))
        status.write_text(
            "\n\n".join(
                f"Package: {name}\nStatus: install ok installed\nVersion: {version}\n{more}"
                for name, version, more in packages
            )
        )
        return kept_runs.packages(status)

    essential, curl = ("libc", "1", "Essential: yes"), ("curl", "7", "Depends: libcurl (>= 7), tls")
    library, tls = ("libcurl", "7", ""), ("gnutls", "3", "Provides: ssl (= 3), tls")
    before = hashed(essential, curl, library, tls)
    assert hashed(("qemu", "9", "Depends: seabios"), tls, library, curl, essential) == before
    for k, name in enumerate(("libc", "curl", "libcurl", "gnutls")):
        one = [essential, curl, library, tls]
        one[k] = (name, "8", one[k][2])
        assert hashed(*one) != before

"""The guest's instruments: the module twoway_testbed, tcpdump and observe."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import tshark_fields
import tshark_oracle
from capture_analysis import analyse
from capture_analysis.one_capture.limit import CANNOT_TELL
from corpus import Specimen
from support.guest.branches.drawn import BRANCHES, draw, experiment
from support.guest.limits_of_runs import judged, run
from support.guest.verdicts_of_runs import told
from support.running import SMALL, write_experiment
from support.runs import carry_out
from zstandard import ZstdDecompressor

from twoway.backends.uml import Uml
from twoway.guest.cache import Guest
from twoway.manifest import read_manifest
from twoway.runs.points import load_point

# The module twoway_testbed writes the same files as tcpdump and observe, byte for byte.

# Long enough for lost packets and for traffic after them.
ROWS = {
    "kalampoukas-5.2": 1,
    "zhang-fig8": 20,
    "zhang-fig4-5@buffer=20": 100,
    "modern-cc@control=cubic,buffer=30": 2,
    "dtm-fig6@control=tahoe_rto,delay_ms=25": 3,
}


def _run(guest: Guest, results: Path, name: str, seconds: float, *, in_kernel: bool) -> Path:
    """Run an experiment's first seconds, captured by kernel or programs; return its folder."""
    point = load_point(name)
    shorter = point.experiment.model_copy(update={"duration_s": seconds, "warm_up_s": 0})
    point = dataclasses.replace(point, experiment=shorter)
    return carry_out(point, results, Uml(guest, in_kernel=in_kernel))


def _queues(folder: Path) -> list[list[str]]:
    """Return the rows of a run's queues without the time at which each was read."""
    rows = (folder / "sockets/queues.csv").read_text().splitlines()
    return [row.split(",")[:5] for row in rows if not row.startswith("#")]


def _reports(folder: Path) -> list[Path]:
    """Return the final reports of a run's sources and sinks."""
    return sorted((folder / "traffic").iterdir())


def _assert_equal(programs: Path, kernel: Path) -> None:
    """Assert that two runs have equal captures, reports of both ends and samples."""
    assert read_manifest(programs).captures == read_manifest(kernel).captures
    for interface in read_manifest(programs).captures:
        ours, theirs = (
            ZstdDecompressor().stream_reader((folder / f"pcap/{interface}.pcap.zst").open("rb"))
            for folder in (kernel, programs)
        )
        assert ours.read() == theirs.read()
    for file in ("sockets/tcp-info.csv", *(f"traffic/{each.name}" for each in _reports(kernel))):
        assert (kernel / file).read_bytes() == (programs / file).read_bytes(), file
    assert _queues(kernel) == _queues(programs)


def test_a_burst_of_any_length_is_captured(guest: Guest, tmp_path: Path) -> None:
    """The tap captures two bursts of 12 000 packets, each at one instant, without a loss."""
    document = {
        **SMALL,
        "profile": "zhang-10ms",
        "stack": {"receive_buffer_bytes": 60_000_000},
        "flows": [{**flow, "window_packets": 12_000} for flow in SMALL["flows"]],
    }
    experiment = write_experiment(tmp_path, document)
    run = carry_out(experiment, tmp_path / "results", Uml(guest))
    assert sum(read_manifest(run).capture_drops.values()) == 0


@pytest.mark.parametrize("name", ROWS)
def test_the_kernel_leaves_the_bytes_of_programs(guest: Guest, tmp_path: Path, name: str) -> None:
    """A run captured and sampled in the kernel equals one of tcpdump and observe."""
    programs = _run(guest, tmp_path / "programs", name, ROWS[name], in_kernel=False)
    kernel = _run(guest, tmp_path / "kernel", name, ROWS[name], in_kernel=True)
    _assert_equal(programs, kernel)


# The files that the guest's tcpdump writes, as the analysis reads them.


def test_captures_of_a_run_are_as_tshark_says(tmp_path: Path) -> None:
    """At each tap packets, connections, sequence numbers and round trips equal tshark's."""
    short = {**SMALL, "duration_s": 0.3, "warm_up_s": 0.1}
    run = carry_out(write_experiment(tmp_path, short), tmp_path / "results")
    specimens = [Specimen(path.name, path) for path in sorted(run.rglob("*.pcap.zst"))]
    assert len(specimens) >= 4
    seen: set[str] = set()
    for case in tshark_oracle.cases(specimens):
        assert len(case.packets) > 100
        assert not list(tshark_fields.count_differences(case))
        assert not list(tshark_fields.field_differences(case, seen))
        assert not list(tshark_fields.end_differences(case))
        assert not list(tshark_fields.sequence_differences(case))
        assert not list(tshark_fields.rtt_differences(case, seen))


def test_a_capture_alone_shows_the_paper(paper_run: Path) -> None:
    """One host's capture of Kalampoukas's symmetric case has his bunches, factor, cycle and rate.

    Of a window, 13 ACKs wait and then arrive an ACK's transmission time apart, 9180/40 closer than
    data; the histogram's bins are 1/128 wide; the capture includes the start-up.
    """
    found = analyse(paper_run / "pcap/h1-eth0.pcap.zst")["flows"][0]
    forward = {name: metric["value"] for name, metric in found["forward"].items()}
    assert found["facts"]["forward"]["vantage"]["value"] == "near the data sender"
    assert forward["ack_bunch_max"] == 13
    assert forward["compression_factor"] == pytest.approx(9180 / 40, rel=1 / 128)
    assert forward["efficiency"] == pytest.approx(0.651, abs=0.002)
    assert forward["train_cycle"] == pytest.approx(0.0241155, rel=1 / 128)


def test_a_verdict_alone_is_not_against_both(paper_run: Path) -> None:
    """ACKs that both captures show as compressed are "bunched" in one host's, not "spaced"."""
    assert list(told(paper_run)) == [("compressed", "bunched")] * 2


@pytest.mark.long
def test_captures_of_branches_tell_their_limits(guest: object, tmp_path: Path) -> None:
    """Captures from three places name what the kernels waited for, in most branches of a run."""
    assert guest
    random = np.random.default_rng([1, 0])
    branches = draw(random)
    found = list(judged(run(experiment(branches, 1), tmp_path, "branches"), branches, random))
    assert {each.kind for each in found} == set(BRANCHES)
    named = [each for each in found if each.said != CANNOT_TELL]
    assert len(named) > 0.75 * len(found)
    assert sum(each.right for each in named) > 0.93 * len(named)

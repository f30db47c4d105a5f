"""The module twoway_testbed leaves what stream, tcpdump and observe leave, byte for byte."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from running import SMALL, write_experiment
from zstandard import ZstdDecompressor

from twoway.backends.uml import Uml
from twoway.contract.manifest import read_manifest
from twoway.guest.cache import Guest
from twoway.runs.cases import load_case
from twoway.runs.run import run_case

# Long enough for each to have lost packets, if it does, and gone on.
ROWS = {
    "kalampoukas-5.2": 1,
    "zhang-fig8": 20,
    "zhang-fig4-5@buffer=20": 100,
    "modern-cc@control=cubic,buffer=30": 2,
    "dtm-fig6@control=tahoe_rto,delay_ms=25": 3,
}


# What a flow may send besides unlimited data; `pacing` is the stack's. No two connections begin in
# the same nanosecond, or with a sample: whom the guest's scheduler then prefers is its choice.
TRAFFIC: dict[str, dict[str, Any]] = {
    "film": {"film": {"mean_mbit": 10, "frames_per_s": 25}, "start_s": 0.0015},
    "rate": {"rate_mbit": 20, "start_s": 0.0015},
    "transfers": {"transfers": {"per_s": 20, "mean_bytes": 50_000}, "connect": "at-start"},
    "pacing": {"connect": "at-start", "start_s": 0.0015},
    "ipv6": {"ip": 6, "start_s": 0.0015},
}


def _run(guest: Guest, results: Path, name: str, seconds: float, *, in_kernel: bool) -> Path:
    """Run an experiment's first seconds in the kernel or with programs; its folder."""
    case, generator = load_case(name), "kernel" if in_kernel else "stream"
    shorter = case.experiment.model_copy(update={"duration_s": seconds, "warm_up_s": 0})
    connections = [c.model_copy(update={"generator": generator}) for c in case.connections]
    case = dataclasses.replace(case, experiment=shorter, connections=tuple(connections))
    return run_case(case, Uml(guest, in_kernel=in_kernel), results)


def _queues(folder: Path) -> list[list[str]]:
    """The rows of a run's queues without the time by which each was read."""
    rows = (folder / "sockets/queues.csv").read_text().splitlines()
    return [row.split(",")[:5] for row in rows if not row.startswith("#")]


def _reports(folder: Path) -> list[Path]:
    """What sources and sinks of a run said at their end."""
    return sorted((folder / "traffic").iterdir())


def _assert_equal(programs: Path, kernel: Path) -> None:
    """Assert that two runs left the same captures, reports of both ends and samples."""
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
    """The tap takes two bursts of 12 000 packets that come at one instant."""
    document = {
        **SMALL,
        "profile": "zhang-10ms",
        "stack": {"receive_buffer_bytes": 60_000_000},
        "flows": [{**flow, "window_packets": 12_000} for flow in SMALL["flows"]],
    }
    experiment = write_experiment(tmp_path, document)
    run = run_case(load_case(str(experiment)), Uml(guest), tmp_path / "results")
    assert sum(read_manifest(run).capture_drops.values()) == 0


@pytest.mark.parametrize("name", ROWS)
def test_the_kernel_leaves_the_bytes_of_programs(guest: Guest, tmp_path: Path, name: str) -> None:
    """Sent, captured and sampled in the kernel, a run is that of stream, tcpdump and observe."""
    programs = _run(guest, tmp_path / "programs", name, ROWS[name], in_kernel=False)
    kernel = _run(guest, tmp_path / "kernel", name, ROWS[name], in_kernel=True)
    _assert_equal(programs, kernel)


@pytest.mark.parametrize("traffic", TRAFFIC)
def test_every_kind_of_traffic_is_streams(guest: Guest, tmp_path: Path, traffic: str) -> None:
    """Films, constant rates, transfers and late, paced connections are those of stream."""
    folders = []
    for generator in ("stream", "kernel"):
        all_have = {"congestion": "reno", "window_packets": None, "generator": generator}
        first, second = ({**flow, **all_have} for flow in SMALL["flows"])
        document = {
            **SMALL,
            "stack": {**SMALL["stack"], "pacing": traffic == "pacing"},
            "flows": [{**first, **TRAFFIC[traffic]}, second],
        }
        home = tmp_path / generator
        home.mkdir()
        case = load_case(str(write_experiment(home, document)))
        folders.append(run_case(case, Uml(guest), home / "results"))
    _assert_equal(*folders)

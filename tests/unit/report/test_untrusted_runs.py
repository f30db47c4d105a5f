"""Runs whose documents a hostile guest, or a stranger, wrote: a sentence, and nothing else."""

import json
import random
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from capture_analysis.errors import AnalysisError
from support.mutations import FILES, of_document, of_table
from support.synthetic_run import write_run
from support.warm_command import twoway

from twoway.errors import in_a_sentence
from twoway.manifest import FAILED
from twoway.measure.analysis import Analysis
from twoway.report.report import analyse_run

RUN = "by-hand/20000101-000030-000000"
# Mutations of each document that a seed draws.
MUTATIONS = 24
_MOST_BYTES = 1 << 30


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Allow this process 1 GiB more than it has."""
    has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (has + _MOST_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    "name",
    [
        "manifest.json",
        "qdisc/r1-before.json",
        "qdisc/r2-after.json",
        "traffic/first-source.json",
        "traffic/second-sink.json",
        "sockets/tcp-info.csv",
        "sockets/queues.csv",
        "pcap/r1-eth1.pcap",
    ],
)
def test_a_mutated_file(tmp_path: Path, name: str) -> None:
    """A file of a run with any content is analysed or refused in a foreseen sentence."""
    run = write_run(tmp_path / RUN)
    content = (run / name).read_bytes()
    if name.endswith(".pcap"):
        mutations = [("cut off", content[:-7]), ("sparse", content + bytes(1 << 20))]
    else:
        mutations = [*(of_table if name.endswith(".csv") else of_document)(content)]
        mutations = random.Random(5).sample(mutations, MUTATIONS)
    mutations += [(f"{each[:20]!r}", each) for each in FILES]
    refused = {}
    for label, mutated in mutations:
        (run / name).write_bytes(mutated)
        try:
            analyse_run(run, page=False)
        except AnalysisError as error:
            refused[label] = str(error)
    assert refused
    assert [
        said for said in refused.items() if "unforeseen" in said[1] or "memory" in said[1]
    ] == []


@pytest.mark.parametrize("name", ["sockets/tcp-info.csv", "sockets/queues.csv"])
@pytest.mark.usefixtures("little_memory")
def test_a_mutated_table(tmp_path: Path, name: str) -> None:
    """A table with any row, header or preamble is read or refused in a sentence with its name."""
    run = write_run(tmp_path)
    content = (run / name).read_bytes()
    wrong = []
    for label, mutated in of_table(content):
        (run / name).write_bytes(mutated)
        analysis = Analysis(run)
        try:
            _ = analysis.socket_samples if "tcp" in name else analysis.queue_samples
            if "tcp" in name:
                analysis.samples_of(analysis.run.connections[0])
        except AnalysisError as error:
            wrong += [] if str(error).startswith(f"{run / name}: ") else [(label, str(error))]
    assert wrong == []


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    "name", ["qdisc/r1-after.json", "traffic/first-sink.json", "sockets/queues.csv"]
)
def test_a_file_without_end(tmp_path: Path, name: str) -> None:
    """A file of terabytes that occupies no disk is refused before it takes memory."""
    run = write_run(tmp_path)
    with (run / name).open("r+b") as file:
        file.truncate(1 << 42)
    with pytest.raises(AnalysisError, match=rf"{name}: (larger than 4 MiB|a row of more than)"):
        analyse_run(run, page=False)


def test_a_port_of_many_digits(tmp_path: Path) -> None:
    """A port that no kernel has is refused with its row; memory does not depend on it."""
    run = write_run(tmp_path)
    with (run / "sockets/tcp-info.csv").open("a") as file:
        file.write("946684830000000000,100000000,1,1,1\n")
    with pytest.raises(AnalysisError, match="row 5: source_port: must be 0 to 65535, got 1000000"):
        _ = Analysis(run).socket_samples


def test_traffic_of_years(tmp_path: Path) -> None:
    """A manifest whose traffic lasts longer than any experiment is refused."""
    run = write_run(tmp_path)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["clock"]["start_ns"] = 0
    (run / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(AnalysisError, match="traffic must last at most 10000000000000000 ns"):
        analyse_run(run)


def test_the_commands_on_a_broken_run(tmp_path: Path) -> None:
    """Commands refuse a broken run in a sentence, handle all others, and `clean` removes it."""
    for name in ("a", "b"):
        run = write_run(tmp_path / f"{name}/20000101-000030-000000")
        assert twoway("report", run).returncode == 0
    broken = tmp_path / "a/20000101-000030-000000"
    (broken / "qdisc/r1-before.json").write_text("7")
    for command in (("report", broken), ("compare", broken, run), ("figures", broken)):
        done = twoway(*command, "--results", tmp_path)
        assert "Traceback" not in done.stderr
        if command[0] == "compare":
            assert done.returncode == 1
        else:
            assert (done.returncode, done.stdout) == (1, "")
            assert "qdisc/r1-before.json: must be a valid list" in done.stderr
    assert json.loads((broken / FAILED).read_text())["error"].startswith(str(broken))
    listed = twoway("runs", "--results", tmp_path)
    assert listed.returncode == 0
    assert "a  not reported\n" in listed.stdout
    done = twoway("clean", "--results", tmp_path, "--yes")
    assert f"{broken}  " in done.stdout
    assert "cannot be analysed" in done.stdout
    assert (run.is_dir(), broken.exists()) == (True, False)


def test_a_run_that_can_be_analysed_again(tmp_path: Path) -> None:
    """Once a run can be analysed, nothing tells any more that it could not."""
    run = write_run(tmp_path / RUN)
    sound = (run / "qdisc/r1-before.json").read_text()
    (run / "qdisc/r1-before.json").write_text("NaN")
    with pytest.raises(AnalysisError, match="NaN is not JSON"):
        analyse_run(run)
    (run / "qdisc/r1-before.json").write_text(sound)
    analyse_run(run)
    assert not (run / FAILED).exists()


@pytest.mark.parametrize("error", [IndexError("list index out of range"), MemoryError()])
def test_an_unforeseen_exception(error: Exception) -> None:
    """An exception that nothing foresaw becomes an error with the run's name."""
    with (
        pytest.raises(AnalysisError, match=r"a run: (unforeseen IndexError at |not enough memory)"),
        in_a_sentence("a run", AnalysisError),
    ):
        raise error

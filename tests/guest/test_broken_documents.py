"""A guest's program spoils files that the analysis reads: one point fails, in a sentence."""

from pathlib import Path

import pytest
from support.running import SMALL, write_experiment
from support.warm_command import twoway

pytestmark = pytest.mark.usefixtures("guest")

# Programs of the guest are root there, and keep no capability to raise a limit.
LIFT = """
(ulimit -f unlimited)
prlimit --fsize=unlimited --pid $$
(truncate -s 1T /mnt/run/pcap/h1-eth0.pcap)
(head -c 70000000 /dev/zero)
exit 0
"""


def _with_program(folder: Path, name: str, script: str) -> Path:
    command = {"name": "a", "host": "h1", "command": ["sh", "-c", script]}
    return write_experiment(folder, {**SMALL, "programs": [command]}, name)


def test_a_spoiled_document_fails_its_point_alone(tmp_path: Path) -> None:
    """A sweep reports a point with a spoiled document and all others; `clean` removes the run."""
    spoiled = _with_program(tmp_path, "spoiled", "echo 7 > /mnt/run/qdisc/r2-before.json")
    sound = write_experiment(tmp_path, SMALL, "sound")
    words = "qdisc/r2-before.json: must be a valid list"
    alone = twoway("run", spoiled, "--results", tmp_path)
    assert (alone.returncode, words in alone.stderr) == (1, True), alone.stderr
    for _ in range(2):
        done = twoway("run", spoiled, sound, "--results", tmp_path)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert words in done.stderr
        assert "1 of 2 points are as their files say" in done.stderr
        assert len([*tmp_path.glob("sound/2*/report.html")]) == 1
    assert twoway("clean", "--results", tmp_path, "--yes").returncode == 0
    assert [*tmp_path.glob("spoiled/*")] == []
    assert len([*tmp_path.glob("sound/2*")]) == 1


def test_no_program_lifts_its_limit(tmp_path: Path) -> None:
    """A program cannot lift its limit of 64 MiB a file, and makes no larger sparse file."""
    path = _with_program(tmp_path, "lifting", LIFT)
    done = twoway("run", path, "--results", tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = tmp_path.glob("lifting/2*")
    assert (run / "programs/a.out").stat().st_size == 64 << 20
    said = (run / "programs/a.err").read_text()
    assert said.count("Operation not permitted") == 2
    assert "File size limit exceeded" in said

"""A run's changes to the machine are undone, whatever ends it."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from twoway.backends.host_changes import HostChanges
from twoway.errors import RunError, UsageError

# A program that changes a setting, prints the new value, and waits to be killed.
KILLED = """
import sys, time
from pathlib import Path
from twoway.backends.host_changes import HostChanges
with HostChanges(Path(sys.argv[1])) as kept:
    kept.setting(Path(sys.argv[2]), "2")
    print("changed", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def setting(tmp_path: Path) -> Path:
    """Make a file with the value 1, in place of a setting below /proc/sys."""
    path = tmp_path / "setting"
    path.write_text("1")
    return path


def test_undone_at_the_end(tmp_path: Path, setting: Path) -> None:
    """A setting has its new value within the `with`, and its original value after it."""
    with HostChanges(tmp_path / "kept") as kept:
        kept.setting(setting, "2")
        kept.setting(setting, "3")
        assert setting.read_text() == "3"
    assert setting.read_text() == "1"
    assert not (tmp_path / "kept/changes.json").exists()


def test_undone_after_an_error(tmp_path: Path, setting: Path) -> None:
    """A run that fails leaves no change, and its own error is reported."""

    def fail() -> None:
        with HostChanges(tmp_path / "kept") as kept:
            kept.setting(setting, "2")
            raise RunError("the run's own")

    with pytest.raises(RunError, match="the run's own"):
        fail()
    assert setting.read_text() == "1"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_undone_after_being_killed(tmp_path: Path, setting: Path, how: signal.Signals) -> None:
    """The keeper outlives a run that is killed, undoes its change, and then frees the machine."""
    argv = [sys.executable, "-c", KILLED, str(tmp_path / "kept"), str(setting)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "changed\n"
        assert setting.read_text() == "2"
        run.send_signal(how)
        run.wait()
    subprocess.run(["flock", tmp_path / "kept/lock", "true"], check=True)
    assert setting.read_text() == "1"


def test_next_run_undoes_what_a_dead_keeper_left(tmp_path: Path, setting: Path) -> None:
    """Changes that a dead keeper recorded are undone before anything else changes."""
    folder = tmp_path / "kept"
    folder.mkdir()
    setting.write_text("2")
    changes = {"settings": {str(setting): "1"}, "modules": ["no_such_module"]}
    (folder / "changes.json").write_text(json.dumps(changes))
    with HostChanges(folder):
        assert setting.read_text() == "1"


def test_one_run_at_a_time(tmp_path: Path) -> None:
    """While one run has the machine, a second run is refused."""
    with (
        HostChanges(tmp_path / "kept"),
        pytest.raises(UsageError, match="another run"),
        HostChanges(tmp_path / "kept"),
    ):
        pass


def test_missing_setting(tmp_path: Path) -> None:
    """A setting that the kernel does not have is an error that names it."""
    with pytest.raises(RunError, match="no-such"), HostChanges(tmp_path / "kept") as kept:
        kept.setting(tmp_path / "no-such", "1")


def test_loaded_module(tmp_path: Path) -> None:
    """If a module is already loaded, it stays, and the run is refused."""
    loaded = next(iter(Path("/sys/module").iterdir())).name
    refused = pytest.raises(RunError, match=f"module {loaded} is loaded already")
    with refused, HostChanges(tmp_path / "kept") as kept:
        kept.module(tmp_path / f"{loaded}.ko", [])
    assert Path(f"/sys/module/{loaded}").exists()


def test_what_cannot_be_undone_is_not_forgotten(tmp_path: Path) -> None:
    """While an earlier run's change cannot be undone, no run begins, and the record stays."""
    folder = tmp_path / "kept"
    folder.mkdir()
    lent = {"nowhere-eth0": {"interface": "lo", "settings": ["no", "such"], "features": []}}
    (folder / "changes.json").write_text(json.dumps({"links": lent}))
    for _ in range(2):
        with (
            pytest.raises(UsageError, match="this machine still has changes of a run"),
            HostChanges(folder),
        ):
            pass
        assert json.loads((folder / "changes.json").read_text())["links"] == lent

"""Bundles and gathered runs of a lab."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lab.playing import PLAYBOOKS, Played, play
from support.running import ROOT
from support.synthetic_run import write_run

from twoway.lab import bundles

# The role `results` on this machine: no file of a host's user becomes a command of root's.

USER = "nobody"
RUN = "one@x=1/20000101-000000-000000"


@pytest.fixture
def host() -> Iterator[Path]:
    """Make a host's folder of data, with a finished run of its user in it."""
    with tempfile.TemporaryDirectory(prefix="lab") as folder:
        Path(folder).chmod(0o755)
        data = Path(folder) / "data"
        write_run(data / "results" / RUN)
        (data / "results" / RUN / "metrics.json").write_text("{}")
        yield data


def _variables(data: Path) -> dict[str, str]:
    return {
        "ansible_connection": "local",
        "ansible_become": "false",
        "twoway_data": str(data),
        "twoway_results": str(data.parent / "gathered"),
        "twoway_user": USER,
        "results_command": str(Path(sys.executable).with_name("twoway")),
    }


def _gather(data: Path) -> Played:
    """Play the role as root, in a working folder of its own."""
    folder, variables = data.parent, _variables(data)
    roles = [str(PLAYBOOKS / "roles" / name) for name in ("twoway", "results")]
    playbook, inventory = folder / "gather.yml", folder / "inventory.json"
    playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "roles": roles}]))
    inventory.write_text(json.dumps({"all": {"hosts": {"host": None}}}))
    (folder / "gathered").mkdir()
    return play(str(playbook.with_suffix("")), inventory, "-e", json.dumps(variables))


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="packing as another user takes root")
def test_a_folder_that_is_named_like_an_option(host: Path) -> None:
    """A folder named like an option of `pack` is not fetched, and the run beside it is."""
    hostile = host / "results" / f"--to={host.name}" / "authorized_keys"
    hostile.mkdir(parents=True)
    (hostile / "metrics.json").write_text("{}")
    played = _gather(host)
    assert played.status == 0, played.said
    gathered = [*(host.parent / "gathered").glob("*/*")]
    assert gathered == [host.parent / "gathered" / RUN]
    assert [path.name for path in host.iterdir()] == ["results"]


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="packing as another user takes root")
def test_what_the_user_may_not_read_is_not_packed(host: Path) -> None:
    """If a run has a file that its user may not read, no run of that user is fetched."""
    secret = host / "results" / RUN / "secret"
    secret.write_text("root's")
    secret.chmod(0o600)
    played = _gather(host)
    assert played.status != 0
    assert f"{RUN}/secret: not readable" in played.sentences()
    assert [*(host.parent / "gathered").iterdir()] == []


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="packing as another user takes root")
def test_runs_of_root_are_gathered_beside_the_users(host: Path) -> None:
    """`collect.yml` fetches the runs of `native`, which are root's and only root may read."""
    native = "one@x=2/20000101-000000-000000"
    write_run(host / "results-native" / native)
    (host / "results-native" / native / "metrics.json").write_text("{}")
    (host / "results-native").chmod(0o700)
    folder = host.parent
    (folder / "gathered").mkdir()
    inventory = folder / "inventory.json"
    inventory.write_text(json.dumps({"all": {"hosts": {"host": None}}}))
    played = play("collect", inventory, "-e", json.dumps(_variables(host)))
    assert played.status == 0, played.said
    gathered = sorted(folder.glob("gathered/*/*"))
    assert gathered == [folder / "gathered" / RUN, folder / "gathered" / native]


# The archives for lab hosts.


@pytest.mark.long
def test_an_environment_has_the_code_of_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an edit of capture-analysis the next environment contains the edited file."""
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "capture-analysis", checkout / "capture-analysis")
    for name in ("pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, checkout / name)
    monkeypatch.setattr(bundles, "ROOT", checkout)
    edited = checkout / "capture-analysis/capture_analysis/errors.py"
    for remark in ("", "# edited\n"):
        edited.write_text(edited.read_text() + remark)
        bundles._make_environment(tmp_path / "environment")
        (installed,) = tmp_path.glob("environment/lib/*/site-packages/capture_analysis/errors.py")
        assert installed.read_text() == edited.read_text()
        shutil.rmtree(tmp_path / "environment")

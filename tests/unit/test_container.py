"""In our OCI image alone, the container may take the sandbox's place."""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.plans import plan_with
from support.running import ROOT, ran

from twoway import confinement, system_calls
from twoway.backends import uml
from twoway.backends.uml import Uml
from twoway.confinement import NOBODY, SETTING, confined_command, refusal
from twoway.contract.plan import PLAN, Plan
from twoway.errors import TwowayError
from twoway.guest.cache import Guest

REFUSED = ["sh", "-c", "echo bwrap: no >&2; exit 1"]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make a machine where the sandbox fails."""
    monkeypatch.setattr(confinement, "_in_sandbox", lambda *_: REFUSED)
    refusal.cache_clear()
    yield
    refusal.cache_clear()


@pytest.fixture
def image(refused: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - for its effect
    """Make a machine of our image where the sandbox fails."""
    monkeypatch.setenv(SETTING, "container")


@pytest.mark.parametrize(("setting", "sandbox"), [(None, REFUSED), ("container", ["env"])])
@pytest.mark.usefixtures("refused")
def test_the_sandbox_is_not_replaced_if_it_need_not_be(
    monkeypatch: pytest.MonkeyPatch, setting: str | None, sandbox: list[str]
) -> None:
    """Outside of the image a refused sandbox is used; in it, one that works."""
    monkeypatch.delenv(SETTING, raising=False)
    if setting:
        monkeypatch.setenv(SETTING, setting)
    monkeypatch.setattr(confinement, "_in_sandbox", lambda *_: sandbox)
    assert refusal() == ""
    assert confined_command({}, shm_mib=1) == sandbox


@pytest.mark.usefixtures("image")
def test_a_missing_sandbox_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard error reports once, with the reason, that the container replaces the sandbox."""
    for _ in range(2):
        assert refusal() == "bwrap: no"
    assert capsys.readouterr().err.count("(bwrap: no): only the container confines guests") == 1


@pytest.mark.usefixtures("image")
def test_without_a_sandbox_nothing_is_roots() -> None:
    """In the image a program gains no privileges, and root's programs run as `nobody`."""
    words = confined_command({}, shm_mib=1)
    assert "--no-new-privs" in words
    assert (f"--reuid={NOBODY}" in words) == (os.geteuid() == 0)


@pytest.mark.usefixtures("image")
def test_without_a_sandbox_files_lie_where_a_guest_looks(tmp_path: Path) -> None:
    """In the image a file must be at the path that the guest uses; otherwise the run fails."""
    confined_command({"/usr": Path("/usr")}, shm_mib=1)
    with pytest.raises(TwowayError, match="it must be /mnt/bin"):
        confined_command({"/mnt/bin": tmp_path}, shm_mib=1)


def test_root_without_rights_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a container's root cannot become `nobody`, the error lists the missing capabilities."""
    monkeypatch.setattr(confinement, "_RIGHTS", {"OF_NO_KERNEL": 63})
    with pytest.raises(TwowayError, match="root lacks OF_NO_KERNEL"):
        confinement._refuse_few_rights()


def test_no_limit_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of processes that is below the sandbox's stays."""
    monkeypatch.setattr("resource.getrlimit", lambda _: (500, 1000))
    assert "--nproc=1000" in confinement._limits(1)


def test_filters_hold_without_bubblewrap() -> None:
    """Under system_calls.py a program can make UNIX sockets, but no network sockets."""
    tries = "from socket import *\nsocket(AF_UNIX)\nsocket(AF_INET)"
    argv = [sys.executable, "-I", system_calls.__file__, sys.executable, "-c", tries]
    done = ran(argv)
    assert "line 3" in done.stderr
    assert "PermissionError: [Errno 1]" in done.stderr


def _guest(folder: Path) -> Guest:
    return Guest(folder / "linux", folder, "6.12", False, "key")


@pytest.mark.usefixtures("image")
def test_the_manifest_tells_what_held_the_guest(tmp_path: Path) -> None:
    """The manifest records that the container was the sandbox; the run's identity omits it."""
    (tmp_path / "linux").touch()
    backend = Uml(_guest(tmp_path))
    assert backend.description().sandbox == "container"
    assert "container" not in str(backend.identify([]))


@pytest.fixture
def plan() -> Plan:
    """Plan an experiment, which reads its topology in the sandbox."""
    return plan_with()


@pytest.mark.usefixtures("plan", "image")
def test_each_guest_has_its_own_run(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container a guest's /mnt/run is its working directory, so that two guests can run."""
    monkeypatch.setattr(uml, "confined_command", lambda _, home, **__: [str(home)])
    plan.write(tmp_path / PLAN)
    words = uml.command(_guest(tmp_path), tmp_path)
    assert words[0] == str(tmp_path)
    assert {"hostfs=/mnt/host", "rootflags=/../.."} < set(words)


def test_an_image_is_its_layer(tmp_path: Path) -> None:
    """Equal layers give equal archives with the correct digest of each part."""
    layer = tmp_path / "layer.tar"
    layer.write_bytes(b"a root file system")
    program = ROOT / "packaging/oci_archive.py"
    for name in "ab":
        argv = [sys.executable, str(program), str(layer), str(tmp_path / name), "1.0", "abc"]
        subprocess.run(argv, check=True, env={"SOURCE_DATE_EPOCH": "86400"})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with tarfile.open(tmp_path / "a") as archive:
        files = {m.name: archive.extractfile(m).read() for m in archive}  # type: ignore[union-attr]
    blobs = {name: blob for name, blob in files.items() if name.startswith("blobs/")}
    assert all(name.endswith(hashlib.sha256(blob).hexdigest()) for name, blob in blobs.items())
    (docker,) = json.loads(files["manifest.json"])
    config = json.loads(files[docker["Config"]])
    (packed,) = docker["Layers"]
    content = gzip.decompress(files[packed])
    assert content == layer.read_bytes()
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(content).hexdigest()}"]
    assert f"{SETTING}=container" in config["config"]["Env"]

"""The wheels that pip and uv build: their contents, and use without the checkout."""

import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from support.running import ROOT, ran

from twoway.paths import cache

pytestmark = pytest.mark.long

UV = next(cache().glob("uv-*/bin/uv"), None)  # found before a test replaces the cache


def uv(*words: str | Path, **settings: str) -> None:
    """Run uv without downloads; skip if its cache lacks something."""
    if UV is None:
        pytest.skip("no uv here: make env fetches it")
    done = ran(
        [UV, *words, "--quiet", "--offline"],
        cwd=ROOT,
        env={"HOME": str(Path.home()), "PATH": "/usr/bin:/bin", **settings},
    )
    if "network was disabled" in done.stderr:
        pytest.skip("a package is not in uv's cache: make env fetches it")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install wheels of the workspace into a new environment; return its folder."""
    scratch = tmp_path_factory.mktemp("wheel")
    environment = scratch / "environment"
    sync = "sync --locked --no-default-groups --no-editable --no-install-project"
    uv(*sync.split(), "--python", "/usr/bin/python3", UV_PROJECT_ENVIRONMENT=str(environment))
    uv("build", "--wheel", "--out-dir", scratch)
    (wheel,) = scratch.glob("*.whl")
    python = environment / "bin/python"
    uv("pip", "install", "--no-deps", "--python", python, wheel)
    return environment


def said(environment: Path, folder: Path, *words: str) -> str:
    """Run an environment's command in a folder; return its output."""
    return ran([environment / "bin/twoway", *words], check=True, cwd=folder).stdout


def test_an_installed_twoway_lists_vets_and_plans(installed: Path, tmp_path: Path) -> None:
    """An installed twoway lists all experiments, and vets and plans one, as the checkout does."""
    for words in (["list"], ["vet", "kalampoukas-5.2"], ["plan", "kalampoukas-5.2", "--json"]):
        assert said(installed, tmp_path, *words) == said(Path(sys.prefix), tmp_path, *words)


def test_a_wheel_has_all_that_experiments_and_guests_need(installed: Path) -> None:
    """The wheel has the checkout's folders without tests and without build products."""
    (share,) = installed.glob("lib/python3*/site-packages/twoway/share")
    folders = sorted(path.name for path in share.iterdir() if path.is_dir())
    assert folders == [
        *("experiments", "kernel-modules", "papers", "suites", "tc-profiles", "topologies", "vm")
    ]
    argv = ["git", "ls-files", "-co", "--exclude-standard", *folders]
    listed = ran(argv, check=True, cwd=ROOT).stdout
    names = {name for name in listed.split() if not name.startswith("kernel-modules/tests/")}
    found = {path for path in share.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert {str(path.relative_to(share)) for path in found} == names | {"REVISION"}


def test_runs_of_an_installed_twoway_are_kept_in_this_folder(
    installed: Path, tmp_path: Path
) -> None:
    """Results go to the current folder, not to the environment."""
    code = "from twoway.paths import results; print(results().absolute())"
    argv = [str(installed / "bin/python"), "-c", code]
    printed = ran(argv, check=True, cwd=tmp_path).stdout
    assert printed == f"{tmp_path / 'results'}\n"


@pytest.mark.parametrize(("builder", "found"), [({}, ""), ({"PIP_BUILD_TRACKER": "x"}, " @ ")])
def test_pip_takes_both_packages_from_the_checkout(
    builder: dict[str, str], found: str, tmp_path: Path
) -> None:
    """A wheel that pip builds requires capture-analysis from the checkout; another, any."""
    uv("build", "--wheel", "--out-dir", tmp_path, **builder)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        lines = archive.read(metadata).decode().splitlines()
    (required,) = (line for line in lines if line.startswith("Requires-Dist: capture-analysis"))
    at = found and found + (ROOT / "capture-analysis").as_uri()
    assert required == f"Requires-Dist: capture-analysis[cluster,figures,parquet]{at}"


def test_the_guests_wheel_joins_twoways(tmp_path: Path) -> None:
    """The guest's files are in the folder in which an installed twoway looks, for Linux alone."""
    for name in ("packaging/guest/pyproject.toml", "packaging/guest/platform_tag.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "twoway").mkdir()
    shutil.copy(ROOT / "twoway/__init__.py", tmp_path / "twoway")
    program = tmp_path / "dist/guest/kernel/linux"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    uv("build", "--wheel", "--out-dir", tmp_path, tmp_path / "packaging/guest")
    (wheel,) = tmp_path.glob("twoway_guest-*-py3-none-manylinux_*_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        mode = archive.getinfo("twoway/share/guest/kernel/linux").external_attr >> 16
    assert mode & 0o111

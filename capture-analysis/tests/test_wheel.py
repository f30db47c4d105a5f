"""The wheel that users install: its content, with a C compiler and without."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import hand_built as built
import pytest

pytestmark = pytest.mark.slow

PACKAGE = Path(__file__).parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "twoway"


def uv() -> str | Path:
    """Return the uv that `make env` fetches, or an installed one."""
    found = next(CACHE.glob("uv-*/bin/uv"), None) or shutil.which("uv")
    return found or pytest.skip("no uv here: make env fetches it")


def build(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Build a wheel into a folder from a copy of the present tree, without downloads."""
    tree = folder / "tree"
    ignored = shutil.ignore_patterns("build", "*.egg-info", "*.so", "__pycache__", "tests")
    shutil.copytree(PACKAGE, tree, ignore=ignored)
    done = subprocess.run(
        [uv(), "build", "--offline", "--wheel", "--out-dir", folder, tree],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if "network was disabled" in done.stderr:
        pytest.skip("setuptools is not in uv's cache: make env fetches it")
    return done


def contents(wheel: Path) -> set[str]:
    """Return the package's files in it."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.startswith("capture_analysis/")}


def tree_files() -> set[str]:
    """Return the package's files in the tree; users need all of them."""
    files = (path for path in (PACKAGE / "capture_analysis").rglob("*") if path.is_file())
    return {str(path.relative_to(PACKAGE)) for path in files if path.suffix not in (".pyc", ".so")}


@pytest.mark.long
def test_with_compiler(tmp_path: Path) -> None:
    """The wheel has the library, is for this platform and any Python 3, and loads."""
    if shutil.which("gcc") is None:
        pytest.skip("not installed: gcc (vm/install-packages run)")
    done = build(tmp_path)
    assert done.returncode == 0, done.stderr
    wheel = next(tmp_path.glob("*.whl"))
    assert "-py3-none-linux_" in wheel.name
    assert contents(wheel) == tree_files() | {"capture_analysis/_clib.so"}
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    code = "from capture_analysis import clib; clib.load(); print(clib.LIBRARY)"
    loaded = subprocess.run(  # `python -c` finds the package in its working directory
        [sys.executable, "-c", code], cwd=installed, capture_output=True, text=True, check=True
    )
    assert loaded.stdout.startswith(str(installed))


@pytest.mark.long
def test_the_core_alone(tmp_path: Path) -> None:
    """The core alone makes tables, JSON and pages; a missing extra's error says how to get it."""
    environment = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(tmp_path / "venv")}
    words = "sync --offline --frozen --no-default-groups --no-editable --package capture-analysis"
    synced = subprocess.run(
        [uv(), *words.split(), "--python", sys.executable],
        cwd=PACKAGE,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if "network was disabled" in synced.stderr:
        pytest.skip("not all packages are in uv's cache: make env fetches them")
    assert synced.returncode == 0, synced.stderr
    command = tmp_path / "venv/bin/capture-analysis"
    (tmp_path / "a.pcap").write_bytes(built.pcap([built.ethernet(built.ipv4())] * 3))

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command, *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    for name in ("flows", "metrics", "report"):
        assert run(name, "a.pcap").returncode == 0
    assert (tmp_path / "a-report/report.html").is_file()
    assert not (tmp_path / "a-report/figures").exists()
    for missed, package, extra in (
        (["export", "a.pcap", "a.csv"], "pyarrow", "parquet"),
        (["match", "a.pcap", "a.pcap", "--pairs", "a.parquet"], "pyarrow", "parquet"),
        (["plot", "a.pcap", "--output", "a.png"], "matplotlib", "figures"),
        (["report", "a.pcap", "--figures"], "matplotlib", "figures"),
        (["metrics", ".", "--scheduler", "tcp://127.0.0.1:1"], "distributed", "cluster"),
    ):
        done = run(*missed)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            f"capture-analysis: {missed[0]}: this needs {package}, which is not installed\n\n"
            f"hint: pip install 'capture-analysis[{extra}]'\n"
        )


def test_without_compiler(tmp_path: Path) -> None:
    """Without a compiler the build ends with a sentence and its remedy, without a traceback."""
    done = build(tmp_path, CC="no-such-compiler")
    assert done.returncode != 0
    assert not list(tmp_path.glob("*.whl"))
    assert "Traceback" not in done.stderr
    sentence = next(line for line in done.stderr.splitlines() if "error: capture-analysis" in line)
    assert "needs a C compiler" in sentence
    assert "no-such-compiler" in sentence
    assert "apt install gcc libc6-dev" in sentence

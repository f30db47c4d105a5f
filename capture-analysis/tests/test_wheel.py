"""What is in the wheel that users install, with a C compiler and without."""

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "twoway"


def build(folder: Path, **environment: str) -> Path:
    """A wheel of the package, built from a copy of the tree as it is; nothing is downloaded."""
    uv = next(CACHE.glob("uv-*/bin/uv"), None) or shutil.which("uv")
    if uv is None:
        pytest.skip("no uv here: make env fetches it")
    tree = folder / "tree"
    ignored = shutil.ignore_patterns("build", "*.egg-info", "_native.so", "__pycache__", "tests")
    shutil.copytree(PACKAGE, tree, ignore=ignored)
    done = subprocess.run(
        [uv, "build", "--offline", "--wheel", "--out-dir", folder, tree],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if "network was disabled" in done.stderr:
        pytest.skip("setuptools is not in uv's cache: make env fetches it")
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


def contents(wheel: Path) -> set[str]:
    """The files in it that are the package's."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.startswith("capture_analysis/")}


def tree_files() -> set[str]:
    """The files of the package in the tree, all of which users need."""
    files = (path for path in (PACKAGE / "capture_analysis").rglob("*") if path.is_file())
    names = {str(path.relative_to(PACKAGE)) for path in files if path.suffix != ".pyc"}
    return names - {"capture_analysis/_native.so"}


def test_with_compiler(tmp_path: Path) -> None:
    """With a compiler the library is in the wheel, which is for this platform and any Python 3."""
    if shutil.which("gcc") is None:
        pytest.skip("not installed: gcc (vm/install-packages run)")
    wheel = build(tmp_path)
    assert "-py3-none-linux_" in wheel.name
    assert contents(wheel) == tree_files() | {"capture_analysis/_native.so"}


def test_without_compiler(tmp_path: Path) -> None:
    """Without one the wheel is of Python alone, for any platform."""
    wheel = build(tmp_path, CC="no-such-compiler")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert contents(wheel) == tree_files()

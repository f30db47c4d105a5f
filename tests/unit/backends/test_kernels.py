"""The kernel of a backend: `--kernel`, and an experiment's `kernel`."""

import subprocess
from pathlib import Path

import pytest
from support.running import SMALL, write_experiment
from support.warm_command import twoway

from twoway.backends.registry import find_backend, kinds
from twoway.errors import UsageError
from twoway.guest.source import Patched, flavour_of, kernel_named, kernel_source


def _tree(folder: Path, version: str) -> Path:
    major, minor = version.split(".")
    (folder / "Makefile").write_text(f"VERSION = {major}\nPATCHLEVEL = {minor}\n")
    return folder


def test_names_of_kernels(tmp_path: Path) -> None:
    """A kernel's name is `guest`, `wide`, `newest-tun`, `6.1`, a folder, or one with a patch."""
    assert kernel_named(None) == "guest"
    assert all(kernel_named(name) == name for name in ("guest", "wide", "newest-tun", "6.1"))
    assert kernel_named(str(tmp_path)) == tmp_path
    patch = tmp_path / "a+b.diff"
    patch.touch()
    assert kernel_named(f"wide+{tmp_path}/a+b.diff") == Patched("wide", patch)
    for name in ("6.12", "guest+gone.diff", f"6.12+{patch}"):
        with pytest.raises(UsageError, match=r"must be guest, wide, newest, newest-tun, 6.1 or "):
            kernel_named(name)


@pytest.mark.parametrize(
    ("version", "flavour"),
    [("6.1", "6.1"), ("6.11", "6.1"), ("6.12", "guest"), ("7.2", "guest"), ("7.3", "newest")],
)
def test_a_tree_is_patched_by_its_version(tmp_path: Path, version: str, flavour: str) -> None:
    """A kernel tree gets the patches of 6.1, from 6.12 on the guest's, from 7.3 the newest's."""
    assert flavour_of(_tree(tmp_path, version)) == flavour
    assert kernel_source(tmp_path).path == tmp_path


@pytest.mark.parametrize("backend", [name for name in kinds() if name != "uml"])
def test_other_backends_have_a_kernel_of_their_own(backend: str) -> None:
    """Every backend but uml refuses `--kernel` before it looks at the machine."""
    with pytest.raises(UsageError, match=f"kernel: the backend {backend} has its own kernel"):
        find_backend(backend, "newest")


@pytest.mark.usefixtures("guest")
def test_a_kernel_that_is_not_built_is_named(tmp_path: Path) -> None:
    """A run on a kernel that was not built says how to build it, and leaves nothing."""
    tree = _tree(tmp_path, "6.12")
    experiment = write_experiment(tmp_path, {**SMALL, "kernel": str(tree)})
    done = twoway("run", experiment, "--results", tmp_path / "results")
    assert done.returncode == 1
    wanted = f"the kernel {tree} is not built: `twoway build --kernel {tree}` does it"
    assert wanted in done.stderr
    assert not (tmp_path / "results").exists()


def test_a_file_names_no_kernel_by_a_relative_path(tmp_path: Path) -> None:
    """An experiment must name a kernel's folder by its whole path, because the file may move."""
    experiment = write_experiment(tmp_path, {**SMALL, "kernel": "linux"})
    done = twoway("vet", experiment)
    assert done.returncode == 2
    assert "kernel: " in done.stderr
    assert "got 'linux'" in done.stderr


@pytest.mark.slow
def test_a_bisection_needs_a_repository_and_the_kernel_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bisection refuses a folder that is no repository, and an experiment with its own kernel."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ends = ("--source", tmp_path, "--good", "a", "--bad", "b")
    experiment = write_experiment(tmp_path, SMALL)
    done = twoway("bisect", experiment, *ends)
    assert done.returncode == 2
    assert "not a git repository" in done.stderr
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    done = twoway("bisect", experiment, *ends, "--results", tmp_path / "results")
    assert (done.returncode, f"a: no commit of {tmp_path}" in done.stderr) == (2, True)
    experiment = write_experiment(tmp_path, {**SMALL, "kernel": "newest"})
    done = twoway("bisect", experiment, *ends)
    assert done.returncode == 2
    assert "kernel: each commit's kernel is tried, got newest" in done.stderr

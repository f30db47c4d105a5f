"""The Debian packages: their contents, and the files that an installed twoway finds."""

import os
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from support.running import ROOT, ran, twoway

from twoway import __version__, paths
from twoway.backends.own_modules import own_modules
from twoway.contract.files import digest
from twoway.contract.plan import LoadModule
from twoway.contract.writing import write_json
from twoway.errors import UsageError
from twoway.guest import source
from twoway.guest.cache import copy_guest, find_guest, kernel_folder
from twoway.guest.programs import programs_key, seal
from twoway.guest.seals import BrokenBuildError


@pytest.fixture
def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy a guest with a dummy kernel and program to a package's place."""
    monkeypatch.delenv("KERNEL_SRC", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    paths.cache().mkdir(parents=True)
    write_json(paths.cache() / "deployed.json", {"source": "some kernel"})
    kernel = kernel_folder("guest")
    (kernel / "build").mkdir(parents=True)
    (kernel / "build/linux").write_text("a kernel")
    sums = {"linux": digest(kernel / "build/linux")}
    facts = {"release": "6.12", "has_seccomp": False, "source": "some kernel", "digests": sums}
    write_json(kernel / "guest.json", facts)
    programs = paths.cache() / "programs" / programs_key(source.kernel_source(), "guest")
    programs.mkdir(parents=True)
    (programs / "init").write_text("an init")
    write_json(seal(programs), {"init": digest(programs / "init")})
    built = find_guest()
    assert built is not None
    folder = tmp_path / "package"
    copy_guest(built, folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    for module in (paths, source):
        monkeypatch.setattr(module, "PACKAGED", folder)
    return folder


def test_a_packaged_guest_is_found(packaged: Path) -> None:
    """A package's guest is used in place while the cache stays empty."""
    guest = find_guest()
    assert guest is not None
    assert guest.kernel.read_text() == "a kernel"
    assert guest.kernel.is_relative_to(packaged)
    assert guest.programs.is_relative_to(packaged)


def test_a_packaged_guest_is_compared_with_its_digests(packaged: Path) -> None:
    """A program that changed after the package was built is named."""
    (program,) = packaged.glob("programs/*/init")
    program.write_text("another init")
    with pytest.raises(BrokenBuildError, match="init: changed since it was built"):
        find_guest()


@pytest.mark.usefixtures("packaged")
def test_results_of_a_package_are_kept_in_the_current_folder() -> None:
    """An installed twoway writes its runs to the current folder, not to the package's."""
    assert paths.results() == Path("results")


def test_results_within_a_checkout_are_kept_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In a checkout runs go to its results folder; elsewhere they go to the current folder."""
    monkeypatch.chdir(ROOT / "docs")
    assert paths.results() == ROOT / "results"
    monkeypatch.chdir(tmp_path)
    assert paths.results() == Path("results")


@pytest.mark.usefixtures("packaged")
def test_a_packaged_guest_builds_no_modules() -> None:
    """An experiment with its own kernel module is refused if no compiler can build it."""
    guest = find_guest()
    assert guest is not None
    step = LoadModule(module="tcp_own", parameters={}, sources={"tcp_own.c": ""})
    with pytest.raises(UsageError, match="this guest was installed ready-made"):
        own_modules(guest, [step])


def test_one_version() -> None:
    """Every file that states the version has that of twoway/__init__.py."""
    analysis = tomllib.loads((ROOT / "capture-analysis/pyproject.toml").read_text())
    assert analysis["project"]["version"] == __version__
    dkms = (ROOT / "kernel-modules/dkms.conf").read_text()
    assert f'PACKAGE_VERSION="{__version__}"' in dkms


def test_licences_of_what_is_vendored() -> None:
    """debian/copyright names exactly the vendored packages."""
    packages = {
        package["name"]: package
        for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    }
    needed: set[tuple[str, str]] = set()  # each with an extra; "" is the package itself
    waiting = [("twoway", "")]
    while waiting:
        name, extra = each = waiting.pop()
        if each not in needed:
            needed.add(each)
            package = packages[name]
            extras = package.get("optional-dependencies", {})
            for wanted in extras[extra] if extra else package.get("dependencies", ()):
                waiting += [(wanted["name"], chosen) for chosen in ("", *wanted.get("extra", ()))]
    comment = " ".join((ROOT / "debian/copyright").read_text().partition("\n\n")[0].split())
    named = set(re.findall(r"[a-z0-9-]+", ",".join(re.findall(r": ([a-z0-9, -]+)\.", comment))))
    assert named == {name for name, _ in needed} - {"twoway", "capture-analysis"}


def test_old_kernels(packaged: Path) -> None:
    """`twoway clean --kernels` lists and removes complete kernels of other checkouts."""
    folder = packaged.parent / "cache/twoway/kernel"
    old, unfinished = folder / ("0" * 16), folder / ("1" * 16)
    for path in (old, unfinished):
        path.mkdir()
    (old / "guest.json").touch()
    before = {path.name for path in folder.iterdir()}
    options = ("clean", "--results", str(packaged.parent / "none"), "--kernels")
    environment = os.environ | {"XDG_CACHE_HOME": str(packaged.parent / "cache")}
    assert twoway(*options, env=environment).stdout.splitlines() == [
        f"{old}  0.0 MB  kernel of another version, configuration or source"
    ]
    assert {path.name for path in folder.iterdir()} == before
    twoway(*options, "--yes", env=environment)
    assert {path.name for path in folder.iterdir()} == before - {old.name}


def test_what_ci_and_setup_fetch_is_pinned() -> None:
    """Actions are named by commit, uv by the hash of its wheel: no tag can be moved under them."""
    used = []
    for path in (ROOT / "action.yml", *(ROOT / ".github/workflows").glob("*.yml")):
        used += re.findall(r"^\s*(?:- )?uses: (\S+)", path.read_text("utf-8"), re.MULTILINE)
    assert len(used) > 5
    assert [name for name in used if not re.fullmatch(r"\./|[\w/-]+@[0-9a-f]{40}", name)] == []
    makefile = (ROOT / "Makefile").read_text("utf-8")
    installs = re.findall(r"pip install(?:.*\\\n)*.*", makefile)
    assert installs
    assert all("--require-hashes" in each and "--hash=sha256:" in each for each in installs)


@pytest.mark.parametrize(("scripts", "command"), [("", "run"), ("a --b", "packetdrill")])
def test_a_step_of_ci_ends_as_its_command(tmp_path: Path, scripts: str, command: str) -> None:
    """The action gives twoway its words as names, not as options, and has twoway's exit code."""
    steps = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"]
    (script,) = (each["run"] for each in steps if each["name"] == "Run")
    said = tmp_path / "twoway"
    said.write_text('#!/bin/sh\n[ $1 = build ] || { printf "%s\\n" "$@"; exit 3; }\n')
    said.chmod(0o755)
    values = {"RESULTS": "r", "EXPERIMENTS": "a --b", "SCRIPTS": scripts, "PROGRAM": "p"}
    done = ran(
        ["bash", "-c", script],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "GITHUB_ACTION_PATH": str(ROOT), **values},
        cwd=tmp_path,
    )
    assert done.returncode == 3
    words = done.stdout.split()
    assert words[:3] == [command, "--results", "r"]
    assert words[words.index("--") :] == ["--", "a", "--b"]
    assert ("--junit" in words) == (command == "packetdrill")

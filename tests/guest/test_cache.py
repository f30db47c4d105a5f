"""A cache with a damaged file is reported, and that file is built again."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.running import SMALL, twoway, write_experiment

from twoway.contract.writing import write_json
from twoway.guest import cache as guest_cache
from twoway.guest import programs as guest_programs
from twoway.guest.cache import Guest, build_guest, find_guest
from twoway.guest.seals import BrokenBuildError, digests_of
from twoway.progress import Steps


@pytest.fixture
def copied(guest: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guest:
    """Make a copy of the guest in the test's own cache, with the digests that a build writes."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    kernel = cache / "twoway/kernel" / guest.kernel.parent.parent.name
    programs = cache / "twoway/programs" / guest.programs.name
    for folder in ("build", "source"):
        (kernel / folder).mkdir(parents=True)
    (kernel / "source/Makefile").touch()
    shutil.copy2(guest.kernel, kernel / "build")
    shutil.copytree(guest.programs, programs)
    facts = {"release": guest.release, "has_seccomp": guest.has_seccomp}
    write_json(kernel / "guest.json", {**facts, "digests": digests_of([guest.kernel])})
    write_json(programs.with_suffix(".json"), digests_of(programs.iterdir()))
    found = find_guest()
    assert found is not None
    return found


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


HARM: dict[str, tuple[Callable[[Guest], Path], Callable[[Path], Any], str]] = {
    "kernel cut": (lambda g: g.kernel, _cut, "changed since it was built"),
    "kernel missing": (lambda g: g.kernel, Path.unlink, "missing"),
    "program changed": (lambda g: g.programs / "stream", _cut, "changed since it was built"),
    "module missing": (lambda g: g.programs / "tcp_fast.ko", Path.unlink, "missing"),
    "facts cut": (lambda g: g.kernel.parent.parent / "guest.json", _cut, "not JSON"),
    "facts empty": (
        lambda g: g.kernel.parent.parent / "guest.json",
        lambda path: path.write_text("{}"),
        "without has_seccomp, release",
    ),
    "digests cut": (lambda g: g.programs.with_suffix(".json"), _cut, "not JSON"),
}


@pytest.mark.parametrize("harm", HARM)
def test_what_is_broken_is_named(copied: Guest, harm: str) -> None:
    """A truncated, changed or lost file of the cache is named, with the command that builds it."""
    path_of, break_it, sentence = HARM[harm]
    path = path_of(copied)
    break_it(path)
    with pytest.raises(BrokenBuildError) as caught:
        find_guest()
    assert str(caught.value).startswith(f"{path}: {sentence}")
    assert caught.value.hint == "`twoway build` builds it again"


def test_no_command_ends_with_a_traceback(copied: Guest, tmp_path: Path) -> None:
    """With a damaged cache, doctor names the damage, and run ends with the same sentence."""
    _cut(copied.kernel)
    sentence = f"{copied.kernel}: changed since it was built"
    doctor = twoway("doctor")
    assert sentence in doctor.stdout
    assert "Traceback" not in doctor.stderr
    run = twoway("run", write_experiment(tmp_path, SMALL), "--results", tmp_path / "results")
    assert (run.returncode, sentence in run.stderr) == (1, True)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("harm", HARM)
def test_what_is_broken_is_built_again(
    copied: Guest, harm: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A build keeps sound files, names damaged ones, and leaves a sound guest."""
    path_of, break_it, _ = HARM[harm]
    kernel, programs = copied.kernel.parent.parent, copied.programs
    sound = {name: shutil.copytree(name, f"{name}.sound") for name in (kernel, programs)}
    built = []

    def rebuild(folder: Path) -> None:
        built.append(folder)
        shutil.copytree(sound[folder], folder)

    def rebuild_programs(folder: Path, *_: Any) -> None:
        rebuild(folder)
        write_json(folder.with_suffix(".json"), digests_of(folder.iterdir()))

    monkeypatch.setattr(guest_cache, "_build_kernel", lambda _source, folder, *_: rebuild(folder))
    monkeypatch.setattr(guest_programs, "build_programs", rebuild_programs)
    break_it(path_of(copied))
    assert build_guest(Steps()) == copied
    assert built == [kernel if "kernel" in harm or "facts" in harm else programs]
    assert "it is built again" in " ".join(capsys.readouterr().err.split())
    assert build_guest(Steps()) == copied
    assert len(built) == 1


def test_a_kernel_without_its_source_is_built_again(
    copied: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel whose source somebody deleted runs, and is built again before modules need it."""
    kernel = copied.kernel.parent.parent
    built = []
    monkeypatch.setattr(
        guest_cache, "_build_kernel", lambda _source, folder, *_: built.append(folder)
    )
    shutil.rmtree(kernel / "source")
    assert find_guest() == copied
    assert build_guest(Steps()) == copied
    assert built == [kernel]

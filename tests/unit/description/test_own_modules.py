"""Own kernel modules: facts from their source, and refusals before anything runs."""

import os
from pathlib import Path

import pytest

from twoway.description.own_modules import controls_with, read_own_modules
from twoway.errors import SpecError
from twoway.paths import EXPERIMENTS

TOY = (EXPERIMENTS / "beyond/modules/tcp_aimd.c").read_text("utf-8")


def _problems(folder: Path, *paths: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read_own_modules(paths, folder)
    return caught.value.problems


def test_a_source_says_its_controls_and_parameters(tmp_path: Path) -> None:
    """Name, controls and parameters of a module come from its C file, and a Kbuild is added."""
    (tmp_path / "tcp_toy.c").write_text(TOY, "utf-8")
    (module,) = read_own_modules(["tcp_toy.c"], tmp_path)
    assert (module.name, module.controls, module.parameters) == (
        "tcp_toy",
        ("aimd",),
        ("keep_percent",),
    )
    assert module.sources["Kbuild"] == "obj-m := tcp_toy.o\n"
    assert controls_with([module])["aimd"].module == "tcp_toy"


def test_a_folder_has_a_kbuild(tmp_path: Path) -> None:
    """A folder's module is the one that its Kbuild builds, from all of the folder's C files."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "aimd.c").write_text(TOY, "utf-8")
    (folder / "more.h").write_text("", "utf-8")
    (folder / "notes.txt").write_text("", "utf-8")
    assert _problems(tmp_path, "mine") == ["own_modules: mine: has no Kbuild"]
    (folder / "Kbuild").write_text("obj-m := tcp_mine.o\ntcp_mine-y := aimd.o\n", "utf-8")
    (module,) = read_own_modules(["mine"], tmp_path)
    assert module.name == "tcp_mine"
    assert [*module.sources] == ["Kbuild", "aimd.c", "more.h"]


def test_all_paths_that_are_no_modules_are_named(tmp_path: Path) -> None:
    """Missing, binary, huge, ambiguous and clashing modules are refused at once, by path."""
    (tmp_path / "binary.c").write_bytes(b"\xff\xfe")
    (tmp_path / "huge.c").write_text(" " * (1 << 20 | 1), "utf-8")
    (tmp_path / "two").mkdir()
    (tmp_path / "two/Kbuild").write_text("obj-m := a.o\nobj-m := b.o\n", "utf-8")
    (tmp_path / "tcp_fast.c").write_text("", "utf-8")
    (tmp_path / "reno.c").write_text(TOY.replace('"aimd"', '"reno"'), "utf-8")
    (tmp_path / "a.c").write_text(TOY, "utf-8")
    (tmp_path / "b.c").write_text(TOY, "utf-8")
    names = ["none.c", "binary.c", "huge.c", "two", "tcp_fast.c", "reno.c", "a.c", "b.c"]
    assert _problems(tmp_path, *names) == [
        "own_modules: none.c: No such file or directory",
        "own_modules: binary.c: not UTF-8: invalid start byte at byte 0",
        "own_modules: huge.c: more than 1048576 bytes of source",
        'own_modules: two: its Kbuild must have one line "obj-m := NAME.o"',
        'own_modules: tcp_fast.c: the module "tcp_fast" is there already',
        'own_modules: reno.c: the control "reno" is there already',
        'own_modules: b.c: the control "aimd" is there already',
    ]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../secret.h", "is not below the experiment's folder"),
        ("{outside}/secret.h", "is not below the experiment's folder"),
        ("linked.c", "is not below the experiment's folder"),
        ("away", "is not below the experiment's folder"),
        ("mine", "notes.h leads out of it"),
        ("piped", "pipe.h is no plain file"),
    ],
)
def test_nothing_leads_out_of_the_folder(tmp_path: Path, path: str, reason: str) -> None:
    """A module with a file outside of its folder is refused: by path, link or linked folder."""
    (tmp_path / "secret.h").write_text("secret")
    here = tmp_path / "here"
    for name in ("mine", "piped"):
        (here / name).mkdir(parents=True)
        (here / name / "Kbuild").write_text("obj-m := tcp_mine.o\n")
    (here / "mine/notes.h").symlink_to(tmp_path / "secret.h")
    (here / "linked.c").symlink_to("../secret.h")
    (here / "away").symlink_to(tmp_path)
    os.mkfifo(here / "piped/pipe.h")
    path = path.format(outside=tmp_path)
    assert _problems(here, path) == [f"own_modules: {path}: {reason}"]

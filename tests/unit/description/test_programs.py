"""Programs and kernel modules of an experiment: refusals, and files that a guest finds."""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from support.running import SMALL, problems_of, write_experiment
from support.warm_command import twoway

from twoway.contract.plan import Command
from twoway.description.own_modules import controls_with, read_own_modules
from twoway.errors import SpecError
from twoway.paths import EXPERIMENTS
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point
from twoway.runs.program_search import INSTALL

PROGRAM = {"name": "it", "host": "h1", "command": ["true"]}


def _problems(folder: Path, *programs: dict[str, Any], **fields: Any) -> list[str]:
    document = {**SMALL, "programs": [{**PROGRAM, **each} for each in programs], **fields}
    return problems_of(write_experiment(folder, document))


def test_an_experiment_of_programs_alone(tmp_path: Path) -> None:
    """Programs need no flow; an experiment with neither is refused."""
    assert _problems(tmp_path, {}, flows=[]) == []
    assert _problems(tmp_path, flows=[]) == ["flows: must be 1 to 4000 connections together, got 0"]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"host": "h9"}, 'host: no host "h9"; the topology has h1, h2'),
        ({"name": "left"}, 'name: "left" is used twice'),
        ({"start_s": 1.5}, "start_s: must be below duration_s (1.5), got 1.5"),
        ({"start_s": 1, "stop_s": 1}, "start_s: must be below stop_s (1), got 1"),
        ({"stop_s": 2}, "stop_s: must be at most duration_s (1.5), got 2"),
        ({"command": [""]}, "command.0: names no program"),
        ({"files": ["absent"]}, "files: absent: No such file or directory"),
        ({"files": ["/etc/passwd"]}, "files: /etc/passwd: is not below the experiment's"),
        ({"files": ["../other"]}, "files: ../other: is not below the experiment's folder"),
        ({"files": ["mine/away"]}, "files: mine/away: is not below the experiment's"),
        ({"files": ["mine"]}, "files: mine: away leads out of it"),
        (
            {"files": ["big", "small"]},
            "files: must be at most 16 MiB together, got 16.5; the largest is it's big",
        ),
        ({"files": ["many"]}, "files: must be at most 1000, got 1001"),
        ({"exit_code": 256}, "exit_code: must be less than or equal to 255, got 256"),
        ({"environment": {"A=B": "1"}}, "environment.A=B: must be of letters, digits and _, no"),
    ],
)
def test_wrong_program_names_its_field(
    fields: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    """Each mistake is refused with its field and value; files of other folders are refused."""
    (tmp_path / "other").write_text("secret")
    folder = tmp_path / "here"
    (folder / "mine").mkdir(parents=True)
    (folder / "mine/away").symlink_to(tmp_path / "other")
    for name, size in (("big", 16 << 20), ("small", 1 << 19)):
        with (folder / name).open("wb") as file:
            file.truncate(size)
    (folder / "many").mkdir()
    for number in range(1001):
        (folder / f"many/{number}").touch()
    (found,) = _problems(folder, fields)
    assert found.startswith((f"programs.0.{problem}", f"programs: {problem}"))


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (".ssh/id", ".ssh is hidden"),
        (".netrc", ".netrc is hidden"),
        ("site", ".secret is hidden"),
        ("alias", ".ssh is hidden"),
        ("mine/key", "key: others may not read it, but they may read the run"),
        ("mine", "key: others may not read it"),
        ("closed/page", "closed: others may not read it"),
        ("open/link", "key: others may not read it"),
    ],
)
def test_private_files_stay_where_they_are(path: str, problem: str, tmp_path: Path) -> None:
    """A hidden file, and one that others may not read, does not become part of a plan."""
    for name in (
        ".ssh/id",
        ".netrc",
        "site/.secret",
        "site/a",
        "mine/key",
        "closed/page",
        "open/a",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "alias").symlink_to(".ssh/id")
    (tmp_path / "open/link").symlink_to("../mine/key")
    (tmp_path / "mine/key").chmod(0o600)
    (tmp_path / "closed").chmod(0o700)
    assert _problems(tmp_path, {"files": ["site/a", "open/a"]}) == []
    (found,) = _problems(tmp_path, {"files": [path]})
    assert found.startswith(f"programs.0.files: {path}: {problem}")


def test_files_are_part_of_the_plan(tmp_path: Path) -> None:
    """A plan has each file's content and execute permission, and a folder's files by path."""
    (tmp_path / "site/deep").mkdir(parents=True)
    (tmp_path / "site/deep/page").write_bytes(b"\0\xff")
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    program = {**PROGRAM, "files": ["tool", "site"], "start_s": 1}
    path = write_experiment(tmp_path, {**SMALL, "programs": [program]})
    (planned,) = build_plan(load_point(str(path))).user_programs
    files = {name: (base64.b64decode(f.base64), f.executable) for name, f in planned.files.items()}
    assert files == {"tool": (b"#!/bin/sh\n", True), "site/deep/page": (b"\0\xff", False)}
    assert (planned.node, planned.run, planned.exit_code) == ("h1", ("true",), 0)
    assert planned.stop_ns - planned.at_ns == 500_000_000


def test_hosts_have_names_where_there_are_programs() -> None:
    """/etc/hosts is written for programs; a plan without programs has no such step."""
    writes = {
        name: [
            step.stdin
            for step in build_plan(load_point(name)).setup
            if isinstance(step, Command) and "/etc/hosts" in step.run
        ]
        for name in ("web-page@bulk=none", "kalampoukas-5.2")
    }
    assert writes == {
        "web-page@bulk=none": [("127.0.0.1 localhost", "10.0.1.2 h1", "10.0.2.2 h2")],
        "kalampoukas-5.2": [],
    }


def test_numbers_and_truth_values_are_words(tmp_path: Path) -> None:
    """A number or truth value in `command` and `environment` is the word that YAML shows."""
    program = {**PROGRAM, "command": ["true", -1, 5201, 0.5, True], "environment": {"R": 200}}
    point = load_point(str(write_experiment(tmp_path, {**SMALL, "programs": [program]})))
    (it,) = point.experiment.programs
    assert it.command == ["true", "-1", "5201", "0.5", "true"]
    assert it.environment == {"R": "200"}
    assert _problems(tmp_path, {"command": [None]}) == [
        "programs.0.command.0: must be a valid string, got None"
    ]


def test_an_axis_over_a_command(tmp_path: Path) -> None:
    """Words of a command are one value of an axis, and of a field with one value too many."""
    axis = {"set": ["seed"], "to": {"one": ["echo", "-c", "a b"]}}
    path = write_experiment(tmp_path, {**SMALL, "programs": [PROGRAM], "matrix": {"what": axis}})
    assert "matrix.what.to.one: 3 values for 1 fields of set" in problems_of(path)


# `vet` names programs of an experiment that a guest would not find.


def test_a_missing_program_is_named_beside_a_missing_file(tmp_path: Path) -> None:
    """`vet` names missing files and missing programs at once."""
    programs = [{"name": "it", "host": "h1", "command": ["no-such-tool"], "files": ["missing"]}]
    path = write_experiment(tmp_path, SMALL | {"programs": programs})
    errors = twoway("vet", path).stderr.splitlines()
    assert errors[0] == f"twoway: {path}: programs.0.files: missing: No such file or directory"
    assert errors[1].startswith(f"twoway: {path}: programs.0.command.0: no-such-tool: no such")


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ({"command": ["true"]}, None),
        ({"command": ["/usr/bin/env", "true"]}, None),
        ({"command": ["./mine.sh"], "files": ["mine.sh"]}, None),
        (
            {"command": ["no-such-tool"]},
            "no-such-tool: no such program in /usr/sbin:/usr/bin:/sbin:/bin",
        ),
        (
            {"command": ["true"], "environment": {"PATH": "/nowhere"}},
            "true: no such program in /nowhere",
        ),
        ({"command": ["/usr/bin/no-such-tool"]}, "/usr/bin/no-such-tool: no such program"),
        ({"command": ["./mine.sh"]}, "./mine.sh: not a program of its `files`"),
        ({"command": ["./words"], "files": ["words"]}, "./words: not a program of its `files`"),
    ],
)
def test_a_program_that_is_not_there_is_named(
    tmp_path: Path, program: dict[str, object], problem: str | None
) -> None:
    """A bare name is searched in PATH, a full path on the machine, and ./NAME in the files."""
    (tmp_path / "mine.sh").write_text("#!/bin/sh\n")
    (tmp_path / "mine.sh").chmod(0o755)
    (tmp_path / "words").write_text("no program\n")
    named = {"name": "it", "host": "h1", **program}
    path = write_experiment(tmp_path, SMALL | {"programs": [named]})
    done = twoway("vet", path)
    assert done.returncode == (2 if problem else 0)
    said = done.stderr.splitlines()
    if problem:
        refused = f"twoway: {path}: programs.0.command.0: {problem}"
        assert said == [refused, "", f"hint: {INSTALL}"]
    else:
        assert said[-1] == "1 experiment is sound"


# Own kernel modules: facts from their source, and refusals before anything runs.


TOY = (EXPERIMENTS / "beyond/modules/tcp_aimd.c").read_text("utf-8")


def _module_problems(folder: Path, *paths: str) -> list[str]:
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
    assert _module_problems(tmp_path, "mine") == ["own_modules: mine: has no Kbuild"]
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
    assert _module_problems(tmp_path, *names) == [
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
    assert _module_problems(here, path) == [f"own_modules: {path}: {reason}"]

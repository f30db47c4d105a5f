"""The `twoway` command: its subcommands, the backends' names, and a stranger's folder."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from planted_modules import plant_modules, planted_that_ran
from support.running import ROOT, SMALL, ran, write_experiment
from support.running import twoway as fresh_twoway
from support.synthetic_run import edit_manifest, metrics_of, write_run
from support.warm_command import twoway

from twoway import __version__, cli
from twoway.backends.registry import kinds
from twoway.backends.sandbox import own_core
from twoway.cli import COMMANDS
from twoway.commands import lab
from twoway.contract.writing import write_json


def test_version_stands_in_one_place() -> None:
    """The command prints its version, which is in one place."""
    done = fresh_twoway("--version")
    assert (done.returncode, done.stdout) == (0, f"twoway {__version__}\n")


@pytest.mark.parametrize(
    "words",
    [(), *((name,) for name in COMMANDS), *(("lab", name) for name in lab.COMMANDS)],
)
def test_help_of_every_command(words: tuple[str, ...]) -> None:
    """Every command, those of the playbooks too, has a help text and exit codes."""
    done = twoway(*words, "--help")
    assert done.returncode == 0
    assert "exit codes: 0 everything is as the experiment's file says" in " ".join(
        done.stdout.split()
    )


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_the_list_of_commands_loads_no_numbers(word: str) -> None:
    """The list of commands and the version load neither NumPy nor pydantic."""
    argv = [sys.executable, "-X", "importtime", "-m", "twoway.cli", word]
    done = ran(argv, check=True, cwd=ROOT)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert loaded & {"argparse", "numpy", "pydantic"} == {"argparse"}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("twoway comput", "compute "),
        ("twoway run zhang-fig6", "zhang-fig6-7 "),
        ("twoway plan experiments/lab/fast", "experiments/lab/fast-ex5-tenth.yml "),
        ("twoway clean --o", "--older-than "),
    ],
)
def test_completion_offers_what_may_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, found: str
) -> None:
    """A shell is offered the commands, experiments, files and options that may follow."""
    answer = tmp_path / "answer"
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": " ", "COMP_LINE": line}
    asked |= {"COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    twoway()
    assert answer.read_text() == found


@pytest.mark.parametrize("words", [("list",), ("schema", "plan")])
def test_a_full_disk_is_said(words: tuple[str, ...]) -> None:
    """Output that does not fit on the disk ends a command with a sentence and status 1."""
    _write_to_a_full_disk(*words)


@pytest.mark.usefixtures("guest")
def test_a_full_disk_is_said_of_a_builds_output() -> None:
    """`build --kernel-dir` on a full disk ends with the same sentence and status."""
    _write_to_a_full_disk("build", "--kernel-dir")


def _write_to_a_full_disk(*words: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "twoway.cli", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            cwd=ROOT,
            env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        )
    assert done.returncode == 1
    assert done.stderr == "twoway: [Errno 28] No space left on device\n"


def test_closed_output() -> None:
    """A command whose standard output is closed works silently."""
    command = f"exec {sys.executable} -m twoway.cli list >&-"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        ("-n 64", "ulimit -n: must be at least 256 open files, got 64"),
        ("-v 150000", "ulimit -v: must be at least 524288 kB, got 150000"),
    ],
)
def test_small_limits(limit: str, sentence: str) -> None:
    """A shell limit that is too small for a run is named with its value; the status is 2."""
    command = f"ulimit {limit}; exec {sys.executable} -m twoway.cli run"
    done = ran(["sh", "-c", command], cwd=ROOT)
    assert (done.returncode, done.stderr) == (2, f"twoway: {sentence}\n")


@pytest.mark.parametrize(
    ("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_ended_while_it_starts(
    how: signal.Signals, code: int, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """A signal before the command line is parsed gives one line, and a shell's exit code."""
    monkeypatch.setattr(cli, "_parser", lambda _: signal.raise_signal(how))
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        assert cli.main() == code
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert capsys.readouterr() == ("", "twoway: interrupted\n")


def test_no_memory(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """A command that gets no memory ends with one line, and status 1."""

    def parsed(_: list[str]) -> None:
        raise MemoryError

    monkeypatch.setattr(cli, "_parser", parsed)
    assert cli.main() == 1
    assert capsys.readouterr() == ("", "twoway: not enough memory\n")


def test_words_of_others(tmp_path: Path) -> None:
    """Control characters of runs and names never reach the terminal; lines are cut."""
    steering, spelt = "\x1b]0;pwn\x9b", "\\u001b]0;pwn\\u009b"
    runs = [write_run(tmp_path / "by-hand" / name) for name in ("20260101-one", "20260102-two")]
    for run in runs:
        document = json.loads((run / "manifest.json").read_text())
        document["identity"] = document["kernel"]["release"] = steering + run.name
        write_json(run / "manifest.json", document)
        metrics_of(document, {}).write(run / "metrics.json")
    said = [
        twoway("runs", "--results", tmp_path),
        twoway("compare", *runs, "--to", tmp_path / "page.html"),
        twoway("report", tmp_path / steering),
        twoway("vet", tmp_path / ("x" * 9000)),
    ]
    assert all("\x1b" not in done.stdout + done.stderr for done in said)
    assert [spelt in done.stdout for done in said] == [True, True, False, False]
    assert [spelt in done.stderr for done in said] == [False, False, True, False]
    assert max(map(len, said[3].stderr.splitlines())) < 2100


def test_colours_of_ours() -> None:
    """Twoway's own texts are coloured on a console; control characters in values are escaped."""
    code = "from twoway.messages import say; say('[red]hi[/] \\x1b[2J', markup=True)"
    done = ran(
        [sys.executable, "-c", code],
        check=True,
        env={**os.environ, "FORCE_COLOR": "1", "TERM": "xterm"},
    )
    assert done.stderr == "\x1b[31mhi\x1b[0m \\u001b[2J\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be a user that passwd has not")
def test_a_user_without_a_home() -> None:
    """Without a home folder, commands that need none work, and others report the reason."""
    nobody: dict[str, Any] = {"user": 54321, "group": 54321, "extra_groups": []}
    environment = {name: value for name, value in os.environ.items() if name != "HOME"}
    environment.pop("XDG_CACHE_HOME", None)
    assert fresh_twoway("list", env=environment, **nobody).returncode == 0
    done = fresh_twoway("run", env=environment, **nobody)
    assert done.returncode == 2
    assert "no home folder: set HOME or XDG_CACHE_HOME" in done.stderr


def test_a_cache_that_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the cache is not writable, a guest is not pinned to a processor of its own."""
    (tmp_path / "twoway").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with own_core() as pinned:
        assert pinned == []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "ours"))
    with own_core() as pinned:
        assert pinned[:2] == ["taskset", "-c"]


def test_backends_offered_uml_first() -> None:
    """The backends are uml, qemu in four variants, and native; uml is first."""
    names = list(kinds())
    assert names[0] == "uml"
    qemu = {"qemu", "qemu-kvm", "qemu-icount", "qemu-tcg"}
    assert set(names) == {"uml", *qemu, "native"}
    assert "; qemu, a distribution's own kernel" in " ".join(twoway("run", "--help").stdout.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("class", "x", "--suite", "quick", "--longest", "0"),
            'above 0 and at most 86400 s, got "0"',
        ),
        (("patch", "x", "--seeds", "0"), 'must be a whole number from 1, got "0"'),
        (("patch", "--help"), "runs of each cell, with the seeds 1 to N (default: 5)"),
    ],
)
def test_numbers_of_a_command_line_have_their_range(words: tuple[str, ...], said: str) -> None:
    """A number outside its range is refused with the range, and help names the default."""
    done = twoway(*words)
    assert done.returncode == (0 if "--help" in words else 2)
    assert said in " ".join(f"{done.stdout}{done.stderr}".split())


def test_quiet_prints_only_errors(tmp_path: Path) -> None:
    """With --quiet standard error has only errors, with their hints."""
    done = twoway("clean", "--quiet", "--results", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    done = twoway("report", "--quiet", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == (
        f"twoway: {tmp_path}: neither a finished run's folder nor an experiment or identity that "
        f"has one in {ROOT}/results\n\nhint: `twoway run` makes one, `twoway runs` lists them\n"
    )


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize("words", [("run",), ("sweep", "--workers", "1"), ("papers",)])
def test_a_results_folder_that_cannot_be_written(words: tuple[str, ...]) -> None:
    """A results folder that cannot be made is refused in one sentence, before anything is run."""
    command, *options = words
    done = twoway(command, "kalampoukas-5.2", "--results", "/proc/none", *options)
    assert done.returncode == 2
    assert done.stderr == (
        "twoway: --results: /proc/none: runs cannot be written to it: No such file or directory\n"
    )


@pytest.mark.usefixtures("guest")
def test_a_run_without_a_name_says_which_experiment_it_runs() -> None:
    """`twoway run` without a name prints the experiment that it runs; with a name it does not."""
    bare = twoway("run", "--results", "/proc/none")
    named = twoway("run", "kalampoukas-5.2", "--results", "/proc/none")
    first = "no experiment is named: running kalampoukas-5.2; `twoway list` shows all\n"
    assert bare.stderr == first + named.stderr


def test_a_problem_of_several_points_is_printed_once(tmp_path: Path) -> None:
    """`vet` prints a problem of several points once, and counts the other points."""
    matrix = {
        "window": {"set": ["flows.left.window_packets"], "to": [0]},
        "count": {"set": ["flows.left.count"], "to": [2, 4, 8]},
    }
    path = write_experiment(tmp_path, SMALL | {"matrix": matrix})
    error, *rest = twoway("vet", path).stderr.splitlines()
    assert error.startswith(
        f"twoway: {path}: point window=0,count=2: flows.0.window_packets: must be "
    )
    assert error.endswith(", got 0; so at 2 more points")
    assert rest == ["", "hint: `twoway schema experiment` describes every field"]


def test_disk_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`twoway doctor --disk` lists the size of each folder of the cache."""
    folder = tmp_path / "twoway/kernel"
    folder.mkdir(parents=True)
    (folder / "linux").write_bytes(bytes(3_000_000))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    done = twoway("doctor", "--disk")
    assert f"disk: kernel                        3 MB in {folder}\n" in done.stdout


def test_a_hint_follows_its_error(tmp_path: Path) -> None:
    """`vet` prints an error, an empty line and the error's hint, as every command does."""
    (tmp_path / "x.yml").write_text("schema: 1\n", "utf-8")
    vetted, run = (twoway(command, tmp_path / "x.yml") for command in ("vet", "run"))
    assert vetted.stderr == run.stderr
    *errors, empty, hint = vetted.stderr.splitlines()
    assert all(line.startswith(f"twoway: {tmp_path}/x.yml: ") for line in errors)
    assert (empty, hint) == ("", "hint: `twoway schema experiment` describes every field")


@pytest.mark.usefixtures("guest")
def test_run_takes_several_experiments_and_rows_of_suites() -> None:
    """`run` of several names counts the points of all, and refuses one that does not exist."""
    names = ("kalampoukas-5.2", "quick/alone@control=bbr")
    done = twoway("run", *names, "--results", "/proc/none")
    assert done.stderr.startswith("twoway: --results: /proc/none: runs cannot be written to it")
    done = twoway("run", *names, "quick/alon")
    assert done.stderr.startswith("twoway: suites/quick.yml: rows.alon: no such row")


# Commands without a guest in a stranger's folder, which has a module of each name.

_WORK = """
from twoway.sweeps.workers import workers
from twoway.sweeps.sweep import Work
if __name__ == "__main__":
    with workers(1) as (threads, run):
        print(threads.submit(run, Work("a", None, None, None)).result().kept)
"""


def test_a_worker_runs_no_module_of_the_current_folder(tmp_path: Path) -> None:
    """The processes that carry out points run no Python file of the current folder."""
    stranger, ours = tmp_path / "stranger", tmp_path / "ours"
    for folder in (stranger, ours):
        folder.mkdir()
    plant_modules(stranger)
    (ours / "work.py").write_text(_WORK)
    argv = [sys.executable, str(ours / "work.py")]
    done = ran(argv, cwd=stranger)
    assert planted_that_ran(stranger) == []
    assert done.stdout == "False\n", done.stderr  # the point is none, and fails


def test_a_labs_services_load_no_module_of_their_working_directory() -> None:
    """Each service of the playbooks that runs Python keeps its working directory off the path."""
    services = list((ROOT / "playbooks").glob("roles/*/templates/*.service.j2"))
    assert services
    for path in services:
        assert "\nEnvironment=PYTHONSAFEPATH=1\n" in path.read_text(), path


# `twoway new` writes valid experiments, or nothing.


def test_a_new_experiment_is_sound(tmp_path: Path) -> None:
    """Without options both files pass `vet`, and so do the fields in their comments."""
    assert twoway("new", "mine.yml", cwd=tmp_path).returncode == 0
    text = (tmp_path / "mine.yml").read_text()
    matrix = "".join(f"{line[2:]}\n" for line in text.splitlines() if line.startswith("# "))
    (tmp_path / "swept.yml").write_text(text + matrix[matrix.index("matrix:") :])
    link = (tmp_path / "mine-link.yml").read_text()
    managed = link.partition("management add ")[2].partition("\n")[0]
    (tmp_path / "mine-link.yml").write_text(link.replace("forward: {", f"forward: {{{managed}, "))
    done = twoway("vet", "mine.yml", "swept.yml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "2 experiments are sound: 5 points\n")


def test_options_become_fields(tmp_path: Path) -> None:
    """Each option appears in its field, even a title with a colon."""
    words = ["--title", "Why: so?", "--down", "8", "--up", "1.5", "--delay", "10", "--queue", "7"]
    words += ["--flow", "a=h1>h2:bbr", "--duration", "8"]
    assert twoway("new", "mine.yml", *words, cwd=tmp_path).returncode == 0
    experiment = yaml.safe_load((tmp_path / "mine.yml").read_text())
    assert experiment["title"] == "Why: so?"
    assert experiment["flows"] == [{"name": "a", "from": "h1", "to": "h2", "congestion": "bbr"}]
    assert (experiment["duration_s"], experiment["warm_up_s"]) == (8, 2)
    directions = yaml.safe_load((tmp_path / "mine-link.yml").read_text())["directions"]
    assert directions["reverse"] == {"rate_mbit": 1.5, "delay_ms": 10, "queue_packets": 7}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["mine.txt"], "mine.txt: the name must end in .yml"),
        (["mine.yml", "--flow", "h1>h2"], "--flow: must be NAME=FROM>TO:CONTROL, got h1>h2"),
        (["mine.yml", "--flow", "a=h1>h9:reno"], 'flows.0.to: no host "h9"'),
        (["mine.yml", "--profile", "none"], "tc-profiles/none.yml: no such profile"),
        (["mine.yml", "--down", "-1"], "rate_mbit: must be greater than"),
    ],
)
def test_what_is_not_sound_is_not_written(tmp_path: Path, words: list[str], sentence: str) -> None:
    """A mistake gives a sentence and exit code 2, and no file is written."""
    done = twoway("new", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_not_overwritten(tmp_path: Path) -> None:
    """An existing file stays unchanged."""
    (tmp_path / "mine-link.yml").write_text("mine")
    done = twoway("new", "mine.yml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "twoway: mine-link.yml: exists already\n")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


# The comparison that `compare` prints for runs.

ALONE = "only parameters differ: metrics and packets are the same\n"


def _two_runs(folder: Path, names: Iterable[str] = ()) -> list[Path]:
    """Make two runs, in whose metrics these names have the values 0 and 1."""
    runs = [write_run(folder / name) for name in ("20260101-one", "20260102-two")]
    for value, run in enumerate(runs):
        document = json.loads((run / "manifest.json").read_text())
        numbers = {name: {"value": value, "unit": "1"} for name in names}
        metrics_of(document, numbers).write(run / "metrics.json")
    return runs


def test_parameters_alone_may_differ(tmp_path: Path) -> None:
    """If only a parameter differs, `compare` says so, and the exit code is 0."""
    runs = _two_runs(tmp_path)
    page = ("--to", tmp_path / "page.html")
    equal = twoway("compare", *runs, *page)
    assert (equal.returncode, ALONE in equal.stdout) == (0, False)
    edit_manifest(runs[1], lambda m: m["kernel"].update(release="another"))
    differing = twoway("compare", *runs, *page)
    assert (differing.returncode, ALONE in differing.stdout) == (0, True)


def test_the_answer_is_short_and_on_standard_output(tmp_path: Path) -> None:
    """The command prints 14 of many differing metrics, those in a table first, and the page."""
    names = [*(f"busy.flow{n}" for n in range(40)), *(f"goodput.flow{n}" for n in range(10))]
    runs = _two_runs(tmp_path, names)
    done = twoway("compare", *runs, "--to", tmp_path / "page.html")
    assert done.returncode == 1
    assert "metrics that differ: 50\n" in done.stdout
    assert done.stdout.count("  goodput.flow") == 10
    assert done.stdout.count("  busy.flow") == 4
    assert "  ... and 36 more\n" in done.stdout
    assert len(done.stdout.splitlines()) < 30
    assert done.stderr == f"all of it: --json, or the page {tmp_path / 'page.html'}\n"

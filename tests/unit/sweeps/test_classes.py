"""`twoway class`: hand-ins, each student's own values, marks, and the words of failures."""

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.running import LINUX
from support.warm_command import twoway

from twoway.backends.uml import Uml
from twoway.contract.suite import Exercise
from twoway.description.suite import LoadedSuite, load_suite
from twoway.errors import RunError, SpecError, UsageError
from twoway.report.class_page import Marked, class_table, gradescope, write_class
from twoway.sweeps import classes
from twoway.sweeps.classes import (
    draws_of,
    hidden_seeds,
    jobs_of,
    mark_class,
    places_of,
    read_hand_ins,
)

UML = Uml(guest=None)  # type: ignore[arg-type]
SUITE: dict[str, Any] = {
    "schema": 2,
    "title": "A lab",
    "columns": ["reno", "cubic"],
    "base": {
        **LINUX,
        "matrix": {
            "control": {"set": ["flows.one.congestion"]},
            "rate": {"set": ["profile.forward.rate_mbit"], "to": [2, 4, 6, 8]},
        },
    },
    "exercise": {"draws": ["rate"], "sets": ["profile.forward.queue_packets"]},
    "rows": {
        "alone": {
            "asks": "Is it quick?",
            "source": "the lab",
            "shows": [
                {"metric": "goodput.one", "better": "more"},
                {"metric": "jain_index", "better": 1},
            ],
        }
    },
}
# Files of a class, and the words that refuse them.
WRONG = {
    "a.yml": ("set: {duration_s: 1}", "a.yml: set.duration_s: not yours to set; the exercise has"),
    "b.yml": ("sets: {}", "b.yml: sets: unknown field; did you mean"),
    "c.yml": ("runs: [xyz]", "runs.0: must be 6 to 64 digits of an identity"),
    "l.yml": ("runs: [17e453021987]", "l.yml: runs.0: must be text in quotes, got inf"),
    "d.yml": ("{", "d.yml: "),
    "e.c": (b"\xff\n", "e.c: cannot be read as text"),
    "f/x.c": ("int x;", ""),
    "g/x.c": ("int x;", "hand in one C file or one .yml file, got x.c, y.yml"),
    "g/y.yml": ("set: {}", ""),
    "h/readme.txt": ("hello", "hand in one C file or one .yml file, got none"),
    "i.yml": ("set: {profile.forward.queue_packets: 9}", ""),
    "m.yml": ("flows: {}", "m.yml: flows: unknown field; a hand-in may have `set` and `runs`"),
    "n.yml": ("{}", "n.yml: has neither `set` nor `runs`"),
    "k [red]=.c": (b"x" * ((1 << 20) + 1), "larger than 1 MiB"),
}


@pytest.fixture
def suite(tmp_path: Path) -> LoadedSuite:
    """Return a suite with one row at four rates."""
    (tmp_path / "lab.yml").write_text(yaml.safe_dump(SUITE))
    return load_suite(str(tmp_path / "lab.yml"))


def _write(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_a_wrong_file_has_a_sentence(suite: LoadedSuite, tmp_path: Path) -> None:
    """A file, or a folder with one file, is a hand-in; each wrong one says why, and links too."""
    folder = _write(tmp_path / "in", {name: content for name, (content, _) in WRONG.items()})
    (folder / "j.c").symlink_to("/etc/passwd")
    (folder / ".hidden.c").touch()
    found = {each.student: each for each in read_hand_ins(folder, suite)}
    assert [*found] == [
        *"abcdefghij",
        "k__red__",
        *"lmn",
    ]  # a name is no markup, and no formula of a table
    for name, (_, words) in WRONG.items():
        if words:
            assert (
                words in next(each for each in found.values() if each.student[0] == name[0]).wrong
            )
    assert [name for name, each in found.items() if not each.wrong] == ["f", "i"]
    assert "cannot be read" in found["j"].wrong
    with pytest.raises(UsageError, match="no hand-in"):
        read_hand_ins(_write(tmp_path / "none", {"x/readme.txt": ""}), suite)


def test_values_follow_from_the_number(suite: LoadedSuite) -> None:
    """A student has the same values each time; many students have all of them."""
    rates = {number: draws_of(suite, str(number))["rate"] for number in range(40)}
    assert rates == {number: draws_of(suite, str(number))["rate"] for number in range(40)}
    assert {*rates.values()} == {"2", "4", "6", "8"}
    (place,) = places_of(suite, {"rate": rates[1]})
    assert place.id == f"lab-alone@control=reno,rate={rates[1]}"
    said = suite.said.model_copy(update={"exercise": Exercise(draws=["rat"])})
    with pytest.raises(SpecError, match=r"exercise\.draws: rat: no row has this axis"):
        draws_of(replace(suite, said=said), "1")


def test_seeds_are_hidden_behind_a_secret() -> None:
    """Without a secret the seeds count from 1; with one they follow from it alone."""
    assert hidden_seeds("", 3) == [1, 2, 3]
    assert hidden_seeds("x", 3) == hidden_seeds("x", 3) != hidden_seeds("y", 3)
    assert len({*hidden_seeds("x", 20)}) == 20


# Answers of `evaluate` by student: a goodput, or an error.
BROKEN = "own_modules: t does not build for 6.12:\ntcp_evaluated.c:3:1: error: x"
ANSWERS: dict[str, Any] = {
    "reno": 1.0,
    "cubic": 2.0,
    "good": 2.5,
    "half": 1.0,
    "broken": {"kind": "compiler", "message": BROKEN},
    "loop": {"kind": "time", "message": "not finished after 60 s of wall time"},
    "crash": {
        "kind": "run",
        "message": f"the guest kernel panicked in f+0x1/0x9 [t]{' after' * 20}",
    },
    "doubt": None,
}
STUDENTS = [*ANSWERS][2:]


def _marked(
    suite: LoadedSuite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **others: Any
) -> tuple[list[Marked], list[str]]:
    """Mark a class with made-up answers; return it, and who ran, in order."""
    answers, ran = {**ANSWERS, **others}, []
    sources = {f"{name}.c": f"/* {name} */" for name in STUDENTS}
    sources["late.yml"] = "set: {duration_s: 1}"

    def answer(lines: Iterable[str], *_: object, **__: object) -> Iterator[dict[str, Any]]:
        for line in lines:
            asked = json.loads(line)
            who = asked["control"].strip("/* \n")
            ran.append(who)
            said, same = answers[who], {"id": asked["id"]}
            if isinstance(said, dict):
                yield {**same, "error": said}
                continue
            metrics = {
                "goodput.one": (said, "Mbit/s"),
                "jain_index": (0.75, "1"),
                "flows": (2, "1"),
            }
            yield {
                **same,
                "sound": said is not None,
                "fidelity": [{"check": "one: payload"}],
                "metrics": {name: {"value": v, "unit": u} for name, (v, u) in metrics.items()},
            }

    monkeypatch.setattr(classes, "evaluate", answer)
    hand_ins = read_hand_ins(_write(tmp_path / "in", sources), suite)
    jobs = jobs_of(suite, hand_ins, [1, 2])
    said: list[str] = []
    marked = mark_class(
        suite,
        "lab.yml",
        hand_ins,
        jobs,
        UML,
        count=1,
        longest_s=60,
        on_answer=lambda text, _: said.append(text),
    )
    assert len(said) == len(ran)
    return marked, ran


def test_one_students_failure_costs_that_students_marks(
    suite: LoadedSuite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marks are shares of the best; who fails has none, in words, and is not run again."""
    marked, ran = _marked(suite, tmp_path, monkeypatch)
    points = {each.student: each.points for each in marked}
    # Jain's index of two flows is 0.5 at worst: 0.75 is half of the way to 1.
    assert points == pytest.approx(
        {"good": 75, "half": 50} | dict.fromkeys(["broken", "crash", "doubt", "late", "loop"], 0)
    )
    assert [each.student for each in marked][:2] == ["good", "half"]
    assert {name: ran.count(name) for name in STUDENTS} == {
        **dict.fromkeys(STUDENTS, 2),
        "broken": 1,
        "loop": 1,
    }
    lines = class_table(suite, marked)
    assert lines[1].split() == ["1.", "good", "75.0", "75"]
    words = {each.student: each.why for each in marked}
    assert words["broken"] == "your C file does not compile: line 3:1: error: x"
    assert words["loop"].startswith(
        "a run with your code does not end in time: look for an endless"
    )
    assert words["crash"].startswith("your code crashes the kernel: the guest kernel panicked in f")
    assert words["doubt"] == "a check of a run with your code fails: one: payload"


def test_a_column_without_a_run_ends_the_class(
    suite: LoadedSuite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marks need the suite's columns: an error of one is the command's."""
    with pytest.raises(RunError, match=r"lab-alone@control=reno,rate=\d: not finished"):
        _marked(suite, tmp_path, monkeypatch, reno=ANSWERS["loop"])


def test_a_class_is_written_for_people_and_for_gradescope(
    suite: LoadedSuite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page ranks, the table has the hand-ins' hashes, and a student's file has test cases."""
    marked, _ = _marked(suite, tmp_path, monkeypatch)
    page = " ".join(write_class(suite, marked, tmp_path / "out").read_text("utf-8").split())
    assert "2 of 7 hand-ins run everywhere; the best, good, has 75 of 100 points" in page
    assert "your C file does not compile: line 3:1: error: x" in page
    assert f'<span class="bad">{next(m.why for m in marked if m.student == "crash")}</span>' in page
    rows = [*csv.DictReader((tmp_path / "out/class.csv").open())]
    assert [row["rank"] for row in rows] == [*"1234567"]
    assert (rows[0]["points"], rows[0]["alone"], rows[0]["hand-in"]) == (
        "75.0",
        "75.0",
        marked[0].sha256[:12],
    )
    found = json.loads((tmp_path / "out/gradescope/half.json").read_text())
    assert found == gradescope(suite, marked[1])
    assert found["score"] == pytest.approx(sum(test["score"] for test in found["tests"]))
    assert sum(test["max_score"] for test in found["tests"]) == 100
    mark = found["tests"][0]
    assert mark["output"] == "1 Mbit/s; best, more is better: 2 Mbit/s"
    assert mark["status"] == "passed"  # red is for no mark
    assert "seed" not in json.dumps(found)


def test_a_students_runs_are_printed(suite: LoadedSuite, tmp_path: Path) -> None:
    """With a number the command prints that student's runs; other calls are refused."""
    done = twoway("class", "--suite", "lab.yml", "--student", "7", cwd=tmp_path)
    rate = draws_of(suite, "7")["rate"]
    assert done.stdout == f"twoway run lab.yml/alone@rate={rate}\n"
    row = SUITE["rows"]["alone"]
    changes: dict[str, dict[str, Any]] = {
        "none": {"shows": [], "cannot": "never"},
        "wrong": {"shows": [{"metric": "godput.one", "better": "more"}]},
    }
    for name, change in changes.items():
        document = {**SUITE, "rows": {"alone": {**row, **change}}}
        (tmp_path / f"{name}.yml").write_text(yaml.safe_dump(document))
    for words, said in (
        ((), "needs a folder of hand-ins, or --student"),
        (("nowhere",), "nowhere: no folder"),
        (("--student", "1", "--suite", "none.yml"), "--suite: none.yml: no row of it has runs"),
        (
            ("--student", "1", "--suite", "wrong.yml"),
            "rows.alone.shows: godput.one: no such metric",
        ),
        ((".", "--seeds", "1001"), "--seeds: must be at most 1000, got 1001"),
        ((".", "--secret", "nowhere"), "nowhere: No such file"),
    ):
        done = twoway("class", "--suite", "lab.yml", *words, cwd=tmp_path)
        assert done.returncode == 2
        assert said in done.stderr

"""`twoway evaluate` and `twoway.evaluate` answer programs: metrics, or an error as data."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import hidden_page
import pytest
from support.guides import copy_listings
from support.running import LINUX, ROOT, twoway

import twoway as product
from twoway.paths import EXPERIMENTS

pytestmark = pytest.mark.usefixtures("guest")

AIMD = (EXPERIMENTS / "beyond/modules/tcp_aimd.c").read_text("utf-8")
GROWS = "\tif (!tcp_is_cwnd_limited(sk))"
LOOPS = AIMD.replace(GROWS, f"\tfor (;;)\n\t\tbarrier();\n{GROWS}")
# Requests by the kind of error that answers them, with words of it.
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "compiler": ({"control": f"{AIMD}}}"}, "does not build"),
    "run": ({"control": AIMD.replace(GROWS, f"\t*(volatile int *)0 = 1;\n{GROWS}")}, "panicked"),
    "time": ({"control": LOOPS, "longest_s": 6}, "not finished after 6 s of wall time"),
    "request": ({"metrics": ["goodput.noe"]}, 'did you mean "goodput.one"?'),
}


def test_a_bad_request_costs_its_own_run_only() -> None:
    """C that does not build, crashes or loops, and a metric's wrong name, end no other request."""
    environment = {**LINUX, "duration_s": 1, "warm_up_s": 0}
    good = {"id": 7, "environment": environment, "control": AIMD, "metrics": ["goodput.one"]}
    bad = [{"id": k, "environment": environment, **fields} for k, (fields, _) in BAD.items()]
    answers = {
        each["id"]: each for each in product.evaluate([*bad, good], workers=2, longest_s=600)
    }
    assert answers.keys() == {*BAD, 7}
    for kind, (_, words) in BAD.items():
        assert answers[kind]["error"]["kind"] == kind, answers[kind]
        assert words in answers[kind]["error"]["message"]
    hint = answers["run"]["error"]["hint"]
    assert hint == "see log/console.txt; `twoway run` keeps the folder"
    assert answers[7]["sound"]
    assert answers[7]["metrics"]["goodput.one"]["value"] > 0.5


def test_an_interrupted_command_leaves_no_file(tmp_path: Path) -> None:
    """A signal ends a run that has begun, and its folder goes with it."""
    words = [sys.executable, "-m", "twoway.cli", "evaluate", "--workers", "1"]
    request = {"environment": {**LINUX, "duration_s": 3000, "warm_up_s": 0}, "seed": 77}
    places = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(words, stdin=subprocess.PIPE, env=places) as command:
        assert command.stdin
        command.stdin.write(f"{json.dumps(request)}\n".encode())
        command.stdin.flush()
        while not [*tmp_path.rglob("*.pcap")]:
            assert command.poll() is None
            time.sleep(0.2)
        command.send_signal(signal.SIGTERM)
    assert command.returncode == 143
    assert [*tmp_path.iterdir()] == []


def test_an_answer_is_kept_and_equals_that_of_a_run() -> None:
    """The same request is answered from the cache, as `twoway run` measures it."""
    request = {
        "environment": "quick/alone@line=20mbit-100ms,buffer=1bdp",
        "control": "reno",
        "set": {"duration_s": 2, "warm_up_s": 0},
        "seed": 2,
        "metrics": ["goodput.flow", "share=goodput.flow / sum(goodput.*)"],
    }
    done = twoway("evaluate", "--workers", "1", input=f"{json.dumps(request)}\n" * 2)
    first, second = map(json.loads, done.stdout.splitlines())
    assert second["kept"]
    assert (first["identity"], first["metrics"]) == (second["identity"], second["metrics"])
    assert first["metrics"]["share"]["value"] == 1


def test_a_finding_on_linux_is_as_kept() -> None:
    """A point of docs/hidden.md on Linux's own stack has the kept number."""
    point, metric = "kalampoukas-remedies@window=28,acks=own,opposite=1", "efficiency.left"
    changes = hidden_page.changes(point, "linux")
    asked = {"environment": point, "seed": None, "set": changes, "metrics": [metric]}
    (answer,) = product.evaluate([asked])
    (line,) = [each for each in hidden_page.kept()[1:] if each["point"] == point]
    assert float(f"{answer['metrics'][metric]['value']:.7g}") == line["linux"]
    assert answer["sound"]


def test_a_class_of_three(tmp_path: Path) -> None:
    """A control has marks beside the suite's, one that does not build has the compiler's words."""
    base = {**LINUX, "duration_s": 1, "warm_up_s": 0}
    base["matrix"] = {"control": {"set": ["flows.one.congestion"]}}
    goodput = {"metric": "goodput.one", "better": "more"}
    row = {"asks": "Is it quick?", "source": "the lab", "shows": [goodput]}
    suite = {"schema": 2, "title": "A lab", "columns": ["reno"], "base": base, "rows": {"a": row}}
    (tmp_path / "lab.yml").write_text(json.dumps(suite))
    (tmp_path / "in").mkdir()
    for name, source in {"good.c": AIMD, "bad.c": f"{AIMD}}}"}.items():
        (tmp_path / "in" / name).write_text(source)
    words = ("in", "--suite", "lab.yml", "--results", "r", "--longest", "600", "--workers", "2")
    done = twoway("class", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    _, first, second = done.stdout.splitlines()
    assert first.split()[:2] == ["1.", "good"]
    assert float(first.split()[2]) > 90
    assert second.split("  ")[-1].startswith("your C file does not compile: line ")
    found = json.loads((tmp_path / "r/class/lab/gradescope/bad.json").read_text())
    assert "error: expected" in found["output"]


@pytest.mark.long
@pytest.mark.parametrize(("script", "made"), [("evolve.py", "evolved"), ("learn.py", "learnt")])
def test_the_scripts_of_the_guide_search(script: str, made: str, tmp_path: Path) -> None:
    """The guide's script runs beside its control alone, and Linux's scores as in the guide."""
    copy_listings("machines.md", tmp_path, script)
    (tmp_path / "tcp_aimd.c").write_text(AIMD)
    done = subprocess.run(
        [sys.executable, script, "0"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    guide = (ROOT / "docs/guides/machines.md").read_text("utf-8")
    rows = [line.partition(f", {made}")[0] for line in done.stdout.splitlines() if made in line]
    assert len(rows) >= 2
    assert all(f"\n{row}, {made}" in guide for row in rows)

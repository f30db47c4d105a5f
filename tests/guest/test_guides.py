"""README and the guides work as written."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import yaml
from capture_analysis.pages.page_template import number
from pictures import ASSETS, all_run_pictures, readme_experiment
from support.guides import carry_out_lines, copy_listings, listing
from support.running import ROOT, carry_out_points, measure, metrics, run_small
from support.runs import carry_out
from support.today import DAY, DAYS
from support.warm_command import twoway

from twoway.contract.metrics import Metrics
from twoway.description.point import point_names
from twoway.description.reading import merge_patch
from twoway.report.report import analyse_run

pytestmark = pytest.mark.usefixtures("guest")


# A picture that every clone of the repository has.
MOST_BYTES = 64 * 1024


def test_pictures_are_of_their_runs() -> None:
    """Each picture of a run in docs/assets equals the output of `make pictures`, byte for byte."""
    for name, svg in all_run_pictures().items():
        assert (ASSETS / name).read_bytes() == svg, f"{name}: `make pictures` draws another"
        assert len(svg) < MOST_BYTES


def test_the_experiment_runs_as_written(tmp_path: Path) -> None:
    """README's experiment runs, and prints the numbers in README."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (printed,) = re.findall(r"```text\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "mine.yml").write_text(readme_experiment(), encoding="utf-8")
    done = twoway("run", "mine.yml", "--results", "results", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    *verdicts, report = re.sub(r"(results/mine)/[\d-]+/", r"\1/RUN/", done.stderr).splitlines()
    assert [*verdicts, *done.stdout.splitlines(), report] == printed.splitlines()


# The guide to one's own experiment works as written.

OWN_EXPERIMENT, HARM, REPETITIONS, SHARING, ANSWERS = (
    ROOT / f"docs/guides/{name}.md"
    for name in ("own-experiment", "harm", "repetitions", "sharing", "answers")
)


def _row(run: Path) -> str:
    """Return a run's row of the guide's tables."""
    found = metrics(run)["metrics"]
    rates = [
        found[f"goodput.{flow}"]["value"] for flow in ("down", "up") if f"goodput.{flow}" in found
    ]
    cells = [f"{rate:.2f} Mbit/s" for rate in rates] + [""] * (2 - len(rates))
    return f"| {' | '.join(cells)} | {found['utilisation.forward']['value']:.0%} |".replace(
        "%", " %"
    )


def test_the_guide_to_an_experiment_works_as_written(tmp_path: Path) -> None:
    """The guide's files are valid and run; the guide's tables and `compare` have the numbers."""
    copy_listings(OWN_EXPERIMENT.name, tmp_path, "my-line.yml", "upload.yml", "grid.yml")
    results, text = tmp_path / "results", OWN_EXPERIMENT.read_text("utf-8").replace("| | ", "|  | ")
    assert twoway("vet", tmp_path / "upload.yml", tmp_path / "grid.yml").returncode == 0
    run = run_small(tmp_path / "upload.yml", results)
    assert f"| both {_row(run)}" in text
    assert twoway("report", run).stdout in text
    carry_out_points(tmp_path / "grid.yml", results)
    done = twoway("run", "grid.yml", "--results", results, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout in text
    for upload in (0, 1):
        for buffer in ("short", "long"):
            (run,) = (results / f"grid@upload={upload},buffer={buffer}").glob("[0-9]*")
            assert f"| {upload} | {buffer} {_row(run)}" in text
    compared = json.loads(twoway("compare", "grid", "--json", "--results", results).stdout)
    assert [run.partition("/")[0] for run in compared["runs"]] == [
        f"grid@upload={upload},buffer={buffer}" for upload in (0, 1) for buffer in ("long", "short")
    ]
    assert "goodput.down" in compared["metrics"]


# The guide to one's own topologies: each of its examples runs as written.

OWN_TOPOLOGY = (ROOT / "docs/guides/own-topology.md").read_text("utf-8")
FILES: dict[str, str] = dict(
    re.findall(r"`([a-z_-]+\.(?:py|yml))`:\n\n```\w+\n(.*?)```", OWN_TOPOLOGY, re.DOTALL)
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with all files of the guide."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("experiment", "busy"),
    [
        ("lot.yml", ("right-1", "right-2", "right-3")),
        ("round-trips.yml@control=cubic", ("right",)),
        ("triangle.yml", ("side-1", "side-2", "side-4")),
        ("levels.yml", ("leaf-down-2", "leaf-down-3", "leaf-up-4")),
        ("exchange.yml", ()),
    ],
)
def test_the_guides_topology_runs(folder: Path, experiment: str, busy: tuple[str, ...]) -> None:
    """The guide's routers and switches run: checks hold, and the bottlenecks are busy."""
    assert twoway("vet", folder / experiment).returncode == 0
    found = measure(folder / experiment, folder / "results")
    assert [row["check"] for row in found["fidelity"] if row["verdict"] != "pass"] == []
    full = [name for name, each in found["metrics"].items() if each["value"] == 1]
    assert [name for name in full if name.startswith("utilisation.")] == [
        f"utilisation.{queue}" for queue in busy
    ]


def test_the_guides_round_trips(folder: Path) -> None:
    """The flow with the longer round trip has the goodput that the guide says."""
    for control, mbit in {"reno": "1.062", "cubic": "1.258", "bbr": "3.246"}.items():
        found = measure(folder / f"round-trips.yml@control={control}", folder / "results")
        assert f"{found['metrics']['goodput.far']['value']:.4g}" == mbit
        assert mbit in OWN_TOPOLOGY


# The guide to harm works as written.


def test_the_guide_to_harm_works_as_written(tmp_path: Path) -> None:
    """The guide's sweep runs, its page shows harm first, and its script prints its table."""
    copy_listings(HARM.name, tmp_path, "my-line.yml", "beside.yml", "harm.py")
    words = ("--results", "results", "--metric", "harm_goodput")
    carry_out_points(tmp_path / "beside.yml", tmp_path / "results")
    done = twoway("run", "beside.yml", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "results/beside/index.html").read_text("utf-8")
    assert 0 < page.index("harm goodput against beside") < page.index("utilisation against beside")
    said = subprocess.check_output([sys.executable, "harm.py"], cwd=tmp_path, text=True)
    assert f"$ python harm.py\n{said}```" in HARM.read_text("utf-8")
    table = pyarrow.parquet.read_table(tmp_path / "results/beside/points.parquet").to_pydict()
    by_name = dict(zip(table["beside"], table["goodput.mine"], strict=True))
    harm = dict(zip(table["beside"], table["harm_goodput.mine"], strict=True))
    alone = by_name["alone"]
    assert harm == pytest.approx({name: (alone - y) / alone for name, y in by_name.items()})


# The guides to repetitions and to shared files work as written.


def test_the_guides_print_what_they_show(tmp_path: Path) -> None:
    """Five seeds print the guide's table and verdict; their shared file gives the same."""
    copy_listings(REPETITIONS.name, tmp_path, "my-line.yml", "again.yml")
    copy_listings(SHARING.name, tmp_path, "shared.py")
    carry_out_points(tmp_path / "again.yml", tmp_path / "results")
    done = twoway("run", "again.yml", "--results", "results", cwd=tmp_path)
    (shown,) = re.findall(
        r"^```text\n(.*?)```", REPETITIONS.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    *table, verdict = shown.splitlines()
    assert done.stdout.splitlines() == table
    assert verdict in done.stderr.splitlines()
    page = (tmp_path / "results/again/index.html").read_text("utf-8")
    assert f'<span class="verdict fail">{verdict.removeprefix("again: ")}</span>' in page
    for line in re.findall(r"^\$ twoway (.*again.*)$", SHARING.read_text("utf-8"), re.MULTILINE):
        verb, *words = line.split()
        done = twoway(verb, *words, cwd=tmp_path)
        assert done.returncode == (words[0] == "again.shared.html"), done.stderr
    said = subprocess.check_output([sys.executable, "shared.py"], cwd=tmp_path, text=True)
    words_of = [line.replace("again.yml", "again").split() for line in table]
    assert [line.split() for line in said.splitlines()] == words_of


# The guide from a question to an answer, as a reader carries it out.


@pytest.mark.long
def test_the_guide_answers_what_it_prints(tmp_path: Path) -> None:
    """The guide's file leaves the table and the sentences that the guide shows."""
    copy_listings(ANSWERS.name, tmp_path, "share.yml")
    ran = twoway("run", tmp_path / "share.yml", "--results", tmp_path / "results")
    assert ran.returncode == 0, ran.stderr
    guide = ANSWERS.read_text("utf-8")
    assert f"```text\n{ran.stdout}```" in guide


# The three labs for a class, as a student carries them out.


@pytest.mark.long
@pytest.mark.parametrize("lab", ["1", "2", "3"])
def test_a_lab_works_as_written(tmp_path: Path, lab: str) -> None:
    """Each command of a lab ends well, and a table that the lab shows is printed."""
    guide, suite = ROOT / f"docs/guides/lab-{lab}.md", f"lab{lab}.yml"
    copy_listings(guide.name, tmp_path, suite)
    (tmp_path / "try").mkdir()
    if lab == "3":
        (tmp_path / "try/4711.c").write_text(listing("own-control.md", "tcp_aimd.c"))
    else:
        copy_listings(guide.name, tmp_path / "try", "4711.yml")
    printed = ""
    for line in re.findall(r"^\$ twoway (.*)$", guide.read_text("utf-8"), re.MULTILINE):
        done = twoway(*line.split(), cwd=tmp_path)
        assert done.returncode == line.startswith("compare"), done.stderr
        printed += done.stdout
    tables = re.findall(r"```text\n(.*?)```", guide.read_text("utf-8"), re.DOTALL)
    assert tables
    lines = [line.rstrip() for line in printed.splitlines()]
    assert [
        row for table in tables for row in table.splitlines() if row.rstrip() not in lines
    ] == []


# The guides with questions of Linux engineers have the numbers that their files give.

GUIDE = "linux-questions.md"


NAMES = [
    "sysctl",
    "qdisc",
    "access",
    "classes",
    "option",
    "black_hole",
    "cellular",
    "handover",
    "commands",
]


@pytest.mark.parametrize("name", NAMES)
def test_each_number_is_of_a_run(tmp_path: Path, name: str) -> None:
    """Each file of the guide runs as written, and its goodputs are those in the text below it."""
    copy_listings(GUIDE, tmp_path, f"{name}.yml")
    carry_out_points(tmp_path / f"{name}.yml", tmp_path / "r")
    done = twoway("run", f"{name}.yml", "--results", "r", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    measured = re.findall(rf"^{name}@\S+ +down +([\d.]+)", done.stdout, re.MULTILINE)
    assert len(measured) > 1
    text = (ROOT / "docs/guides" / GUIDE).read_text("utf-8").partition(f"`{name}.yml`")[2]
    below = text.partition("```yaml")[2].partition("```")[2].partition("\n## ")[0]
    assert [each for each in measured if each not in below] == []


PUBLIC = "public-questions.md"
TEXT = (ROOT / "docs/guides" / PUBLIC).read_text("utf-8")
# What the page says now, by number, and the fields of those that it asks itself.
NOW = dict(re.findall(r"^\| (\d+) \|.* \| ([^|]+) \|$", TEXT, re.MULTILINE))
FIELDS: dict[Any, Any] = yaml.safe_load(TEXT.partition("```yaml\n")[2].partition("```")[0])


def numbers_of(now: str) -> list[str]:
    """List the numbers of a cell, without those of names and addresses."""
    return re.findall(r"\d+(?:\.\d+)?", re.sub(r"`[^`]*`|\([^)]*\)", "", now))


def test_other_numbers_are_the_guides() -> None:
    """Each of twenty questions has an answer, from its own fields or from the other guide."""
    assert [*map(int, NOW)] == [*range(1, 21)]
    guide = (ROOT / "docs/guides" / GUIDE).read_text("utf-8")
    for name, now in NOW.items():
        assert numbers_of(now)
        if int(name) not in FIELDS:
            assert all(each in guide for each in numbers_of(now))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] * (k % DAYS != DAY))
        for k, name in enumerate([*FIELDS][1:])
    ],
)
def test_each_public_question_has_its_answer(tmp_path: Path, name: int) -> None:
    """A question's numbers are metrics of its sound runs, or what their programs print."""
    file = tmp_path / "q.yml"
    file.write_text(yaml.safe_dump(merge_patch(FIELDS["base"], FIELDS[name])))
    carry_out_lines(PUBLIC, "python3", tmp_path)
    said: list[str] = []
    for point in point_names(str(file)):
        run = carry_out(point, tmp_path / "results")
        analyse_run(run, page=False)
        found = Metrics.read(run / "metrics.json")
        assert found.sound
        said += [number(each.value) for each in found.metrics.values() if each.value is not None]
        said += [each.read_text() for each in run.glob("programs/*.out")]
    missing = [each for each in numbers_of(NOW[str(name)]) if each not in "\n".join(said)]
    assert missing == []

"""Documents: links that lead to files, decisions of one form, and counts of the tree."""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import atlas_page
import hidden_page
import pytest
import results_kept
import results_noticed
import results_page
import speed_page
import yaml
from support.running import ROOT, ran
from support.today import DAY, DAYS

from twoway.commands.options import all_ids
from twoway.description.point import point_names
from twoway.report.papers_tables import write_claims

DECISIONS = sorted((ROOT / "docs/decisions").glob("[a-z]*.md"))
TRACKED = ran(["git", "ls-files", "*.md"], check=True, cwd=ROOT).stdout.split()
# Pages of history have counts that were true when they were written.
_OF_THEIR_DAY = ("CHANGELOG.md", "docs/decisions/", "docs/lab.md", "vm/patches/upstream/")
_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_WORDS += ["eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"]
_NUMBER = rf"(\d+|{'|'.join(_WORDS)})"
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)(?:#[^)]*)?\)")


def test_links_lead_to_files() -> None:
    """Each relative link of a document leads to a file of the repository."""
    documents = [ROOT / name for name in TRACKED]
    links = [(path, to) for path in documents for to in _LINK.findall(path.read_text("utf-8"))]
    assert links
    assert [f"{path}: {to}" for path, to in links if not (path.parent / to).exists()] == []


def test_notebooks_are_committed_without_outputs() -> None:
    """No cell of a notebook in docs has an output or a number: `make docs` runs them."""
    notebooks = [*(ROOT / "docs").rglob("*.ipynb")]
    assert notebooks
    for path in notebooks:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        ran = [each for each in cells if each.get("outputs") or each.get("execution_count")]
        assert ran == [], path


def test_an_experiment_of_a_guide_names_its_stack() -> None:
    """Each experiment or suite that a guide lists says whose TCP its hosts have."""
    listed = [
        (path.name, listing)
        for path in [ROOT / "README.md", *(ROOT / "docs/guides").glob("*.md")]
        for listing in re.findall(r"(?ms)^```yaml\n(.*?)```", path.read_text("utf-8"))
        if "topology:" in listing
    ]
    assert len(listed) > 30
    assert [name for name, listing in listed if "preset:" not in listing] == []


def test_decisions_are_complete() -> None:
    """A decision has a number, a date, a status and sections in order, and is in the index."""
    index = (ROOT / "docs/decisions/README.md").read_text(encoding="utf-8")
    numbers = []
    for path in DECISIONS:
        _, *sections = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for text in sections:
            number = re.match(r"(\d{4}) \S.*\n\n\d{4}-\d\d-\d\d.*\. Status: \S", text)
            assert number, f"{path}: {text.partition(chr(10))[0]}"
            parts = re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE)
            form = ["Context", "Measurement", "Choice"]
            assert parts in (form, [*form, "Consequences"]), number
            numbers += [number[1], *re.findall(r"^Replaces (\d{4}), ", text, re.MULTILINE)]
            assert re.search(rf"\]\({path.name}\).*\b{number[1]}\b", index), number
    assert sorted(map(int, numbers)) == list(range(1, len(numbers) + 1))


def _points() -> int:
    return sum(len(point_names(name)) for name in all_ids())


def _modules() -> int:
    kbuild = (ROOT / "kernel-modules/Kbuild").read_text(encoding="utf-8")
    return len(re.findall(r"^obj-m ", kbuild, re.MULTILINE))


def _patches() -> int:
    """Count the patches of 6.12, without cover letters and patches for other kernels."""
    found = (ROOT / "vm/patches").glob("[!67]*/**/*.patch")
    paths = (path for path in found if path.name[:4] != "0000")
    return sum("\nNeeded-from: " not in path.read_text() for path in paths)


@pytest.mark.parametrize(
    ("phrase", "count"),
    [
        (rf"{_NUMBER} (?:small )?patches", _patches),
        (rf"{_NUMBER} (?:kernel )?modules", _modules),
        (rf"{_NUMBER} experiments with", lambda: len(all_ids())),
        (rf"(?:experiments with|All|\d of|\d of the) {_NUMBER} points", _points),
    ],
)
def test_a_count_in_a_document_is_the_trees(phrase: str, count: Callable[[], int]) -> None:
    """The numbers of patches, modules, experiments and points in each document are right."""
    said = {
        (name, found)
        for name in TRACKED
        if not name.startswith(_OF_THEIR_DAY)
        for found in re.findall(rf"\b{phrase}\b", _one_line(name))
    }
    counted = {_WORDS.index(found) if found in _WORDS else int(found) for _, found in said}
    assert counted == {count()}, said


def _one_line(name: str) -> str:
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def test_make_help_lists_every_target() -> None:
    """`make help` lists each target of the Makefile that has a description."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    described = re.findall(r"^(\S+):.* ## ", makefile, re.MULTILINE)
    said = ran(["make", "help"], check=True, cwd=ROOT)
    assert re.findall(r"^  make (\S+)", said.stdout, re.MULTILINE) == described


def test_make_help_lists_every_layer_of_tests() -> None:
    """`make help` lists each LAYER that `make test` takes; any other is an error."""
    said = ran(["make", "help"], check=True, cwd=ROOT)
    layers = re.findall(r"^    LAYER=(\S+)", said.stdout, re.MULTILINE)
    assert {"long", "smp", "lab"} < {*layers}
    other = ran(["make", "test", "LAYER=other"], cwd=ROOT)
    assert f"LAYER: must be one of {' '.join(layers)}, got other." in other.stderr


def test_every_mark_of_a_layer_is_left_out_by_default() -> None:
    """`make test` leaves out each mark that pyproject.toml gives a LAYER, and the LAYER exists."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    layers = re.findall(r"LAYER=(\w+)\)", "\n".join(settings["markers"]))
    assert f"-m '{' and '.join(f'not {mark}' for mark in layers)}'" in settings["addopts"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [mark for mark in layers if f"\nlayer-{mark}: " not in makefile] == []


def test_readme_names_the_main_command_and_its_tests() -> None:
    """README has `make experiment` and `make test` with their times; .ci/run calls the second."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in ("make experiment", "make test"):
        assert re.search(rf"^\| [^|]+ \| `{command}`[^|]+: .*\b\d+ minutes\b", readme, re.MULTILINE)
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert 'make --no-print-directory "$@"' in script
    assert "\npart test\n" in script


def test_every_experiment_is_on_the_page_of_papers() -> None:
    """docs/papers.md has each experiment's id once in its table."""
    page = (ROOT / "docs/papers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|`]+ \| (.*) \|$", page, re.MULTILINE)
    assert sorted(re.findall(r"`([^`]+)`", " ".join(rows))) == all_ids()


def test_the_page_of_results_is_generated() -> None:
    """docs/results/README.md equals the output of `make results-page`."""
    assert results_page.PAGE.read_text(encoding="utf-8") == results_page.page()


def test_the_page_of_what_the_papers_tcp_hides_is_generated() -> None:
    """docs/hidden.md follows from the kept lines; those of the papers' TCP are kept numbers."""
    assert hidden_page.PAGE.read_text(encoding="utf-8") == hidden_page.page()
    lines, numbers = hidden_page.kept()[1:], results_kept.kept_numbers()
    assert len(hidden_page.FINDINGS) == 20
    needed = hidden_page.needed()
    assert {line["point"]: None for line in lines} == dict.fromkeys(needed)
    for line in lines:
        assert line["papers"] == numbers[line["point"]][line["metric"]]
        assert len(set(line["runs"].values())) == len(line["runs"])


def test_a_finding_on_another_stack_stays_weakens_goes_or_is_reversed() -> None:
    """The share of the papers' effect decides, whatever its sign; no sound run decides nothing."""
    words = [hidden_page.verdict(-2, found) for found in (-4, -1.5, -1.4, -0.5, 0, 0.4, 0.5, None)]
    assert words == [*["stays"] * 2, *["weaker"] * 2, *["gone"] * 2, "reversed", "cannot be told"]


@pytest.mark.slow
@pytest.mark.parametrize("every", [DAYS, pytest.param(1, marks=pytest.mark.long)])
def test_kept_claims_are_todays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """claims.csv has the verdicts of kept numbers and today's files, of the day's papers or all."""
    ids = {name: results_kept.paper_of(name) for name in all_ids()}
    papers = sorted({*ids.values()})[DAY % every :: every]
    monkeypatch.setattr(results_kept, "all_ids", lambda: [n for n in ids if ids[n] in papers])
    write_claims(tmp_path / "claims.csv", results_kept.kept_claims())
    head, *kept = (results_kept.RESULTS / "claims.csv").read_text(encoding="utf-8").splitlines()
    todays = [line for line in kept if line.partition(",")[0] in papers]
    assert (tmp_path / "claims.csv").read_text(encoding="utf-8").splitlines() == [head, *todays]
    assert not [line for line in kept if "other run missing" in line]


def test_a_change_of_the_setup_is_noticed() -> None:
    """A segment more refutes the worked example's five values, slower ACKs three, 1 ns none."""
    point, theory = "kalampoukas-3.2@ack_bytes=40", "kalampoukas"
    found = [e for e in results_page.judge_kept_numbers() if e.said[:2] == (point, theory)]
    counts = results_noticed.count_noticed(found)
    assert [*counts.values()] == [len(found), 5, 3, 0]


def test_a_kept_line_is_of_a_clean_revision() -> None:
    """A line of the kept numbers whose run had uncommitted changes is refused, by its point."""
    results_kept.later_revisions(results_kept.read_lines())
    line = {"point": "zhang-fig8", "git": "5bad94229c0b-dirty", "queue_peak.forward": 55.0}
    with pytest.raises(SystemExit, match=r"^zhang-fig8: ran at 5bad94229c0b-dirty: commit "):
        results_kept.later_revisions([line])


def test_figures_of_speed_are_printed_by_benchmarks() -> None:
    """`make bench KEEP=1` writes the output of its benchmark into docs/speed.md, and no other."""
    page = speed_page.PAGE.read_text(encoding="utf-8")
    names = re.findall(r"\n\$ make bench OF=(\w+)\n", page)
    assert {*names} < {*re.findall(r"\nbench-of-(\w+):", (ROOT / "Makefile").read_text("utf-8"))}
    for name in names:
        written = speed_page.with_output(page, name, "\\1 of it\n")
        (block,) = re.findall(rf"\n\$ make bench OF={name}\n(.*?)\n```\n", page, re.DOTALL)
        assert written == page.replace(block, "\\1 of it")


def test_the_capture_analysis_readme_has_the_counts_of_its_pages() -> None:
    """capture-analysis/README.md has how-true.md's verdicts and the reader's speed of speed.md."""
    readme = _one_line("capture-analysis/README.md")
    (row,) = re.findall(
        r"\| all \| compressed \| (\d+) \| 0 \| (\d+) \| (\d+) \|",
        (ROOT / "capture-analysis/docs/how-true.md").read_text(encoding="utf-8"),
    )
    called, bunched, untold = map(int, row)
    assert f"all of the {called} directions called compressed were compressed" in readme
    assert (
        f"of the {called + bunched + untold} compressed ones {untold} could not be told, "
        f"and {bunched} were called bunched"
    ) in readme
    (speed,) = re.findall(r"\nfile to columns +([\d.]+) ", speed_page.PAGE.read_text("utf-8"))
    assert f"reads {round(float(speed))} million packets a second" in readme


def test_twelve_questions_are_of_experiments_that_there_are() -> None:
    """The page of questions has twelve, each with an existing experiment or a score."""
    page = (ROOT / "docs/guides/questions.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\| [^|]+\? \| `twoway (\S+) (\S+)` \|$", page, re.MULTILINE)
    assert len(commands) == 12
    named = {name for command, name in commands if command in ("run", "sweep")}
    assert named <= set(all_ids())
    # Their first statements are of indices, or check the testbed: `metrics:` comes before those.
    for name in ("pendulum", "aqm", "bbr-loss", "policer-tcp", "ecn"):
        (path,) = ROOT.glob(f"experiments/*/{name}.yml")
        assert "metrics" in yaml.safe_load(path.read_text(encoding="utf-8")), name


def test_the_atlas_follows_from_its_cells() -> None:
    """docs/atlas.md has each situation on each kernel, and a command for each row that differs."""
    page = atlas_page.PAGE.read_text(encoding="utf-8")
    assert page == atlas_page.page()
    head, *rows = atlas_page.kept()
    assert [name for name, *_ in rows] == [*atlas_page.SITUATIONS]
    assert len(rows) >= 30
    assert len(head) == len(atlas_page.KERNELS) + 1
    for name, *found in rows:
        assert (f"make atlas OF={name}\n" in page) == (len(set(found)) > 1)


def test_workflows_check_a_pull_request() -> None:
    """For pull requests one workflow runs .ci/run, and one runs an experiment by action.yml."""
    steps = []
    for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow[True] == "pull_request"  # YAML 1.1 reads `on` as true
        steps += [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert ".ci/run" in [step.get("run") for step in steps]
    (called,) = [step["with"]["experiments"] for step in steps if step.get("uses") == "./"]
    assert set(called.split()) <= set(all_ids())

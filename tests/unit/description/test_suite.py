"""Suites of situations for congestion controls: those of the checkout, and refusals."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.warm_command import twoway

from twoway.description.point import find_source, point_names
from twoway.description.reading import merge_patch
from twoway.description.suite import (
    control_of,
    load_suite,
    row_names,
    rows_for,
    rows_without,
    suite_names,
    usual_seeds,
)
from twoway.errors import SpecError, UsageError
from twoway.report.card import card_table, make_card
from twoway.runs.points import load_point, load_points


@pytest.mark.parametrize("name", suite_names())
def test_every_row_is_sound_at_every_point(name: str) -> None:
    """Each row's experiment is valid at all points, and has the metrics shown."""
    suite = load_suite(name)
    shown = [row for row, each in suite.said.rows.items() if each.shows]
    assert row_names(name) == [f"{name}/{row}" for row in shown]
    for row in suite.experiments:
        for point in load_points(row):
            assert {each.metric for each in suite.rows[row.id].shows} <= {*point.metrics}


def test_a_row_runs_by_its_name_or_id() -> None:
    """`quick/alone` and the id `quick-alone`, which reports print, are the same experiment."""
    for name in ("quick/alone", "quick-alone"):
        point = load_point(f"{name}@control=bbr,line=20mbit-100ms,buffer=1bdp")
        assert point.id == "quick-alone@control=bbr,line=20mbit-100ms,buffer=1bdp"
        assert point.flows["flow"].congestion == "bbr"
        assert len(point_names(f"{name}@buffer=1bdp")) == 3


def test_an_experiment_of_a_suites_name_is_itself() -> None:
    """`ecn` is an experiment and a suite: a command that takes experiments takes the first."""
    assert find_source("ecn").file.name == "ecn.yml"
    assert find_source("ecn").file.parent.name == "beyond"
    assert find_source("ecn/alone").id == "ecn-alone"


@pytest.mark.parametrize(
    ("name", "problem", "hint"),
    [
        (
            "quick/alon",
            'suites/quick.yml: rows.alon: no such row; did you mean "alone"?',
            "there are alone, ",
        ),
        ("bbr/drain-time", "suites/bbr.yml: rows.drain-time: has no experiment: version 1 has", ""),
        ("quick", "quick: is a suite, not an experiment", "`twoway score --suite quick` runs it"),
        ("quik/alone", "quik/alone: no such experiment", "`twoway list` shows all"),
    ],
)
def test_a_row_that_is_none(name: str, problem: str, hint: str) -> None:
    """A row without an experiment, and a suite in place of a row, are refused with a way on."""
    with pytest.raises(SpecError) as raised:
        find_source(name)
    assert str(raised.value).startswith(problem)
    assert raised.value.hint.startswith(hint)


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_row_is_a_merge_patch(document: Any, patch: Any, expected: Any) -> None:
    """Fields of a row change those of `base` as in the examples of RFC 7396, appendix A."""
    assert merge_patch(document, patch) == expected


def test_another_control_has_the_same_points() -> None:
    """The rows of another control differ only in the axis `control` and in its module."""
    suite = load_suite("quick")
    rows = [*rows_for(suite, "vegas", None)]
    for ours, theirs in zip(suite.experiments, rows, strict=True):
        points = [point.id.partition("@")[2] for point in load_points(theirs)]
        expected = [point.id.partition("@control=reno")[2] for point in load_points(ours)]
        assert points == [f"control=vegas{rest}" for rest in expected if rest]
    assert load_points(rows[0])[0].flows["flow"].congestion == "vegas"


def test_a_control_of_a_family_has_its_parameter_in_its_name() -> None:
    """The control fast30 sets `fast` and its parameter 30 in every flow of the rows' axis."""
    assert control_of("fast30") == ("fast30", None)
    points = load_points(next(rows_for(load_suite("two-way"), "fast30", None)))
    assert {point.values["control"] for point in points} == {"fast30"}
    for flow in points[-1].flows.values():
        assert (flow.congestion, flow.alpha_packets) == ("fast", 30)


def test_a_column_may_be_a_control_on_another_stack_or_kernel() -> None:
    """A column cubic+papers has the stack's preset, fast30+newest the kernel; all else is equal."""
    for column, congestion, stack, kernel in (
        ("cubic+papers", "cubic", "papers", None),
        ("fast30+newest", "fast", "linux", "newest"),
        ("quic-bbr+papers", None, "papers", None),
    ):
        control, module = control_of(column)
        rows = [*rows_for(load_suite("quick"), control, module)]
        for row in rows:
            for point in load_points(row):
                assert point.values["control"] == column
                assert (point.experiment.stack.preset, point.experiment.kernel) == (stack, kernel)
                each = point.experiment.stack.acks == "every-segment"
                assert each == (stack == "papers")
                assert f"@control={column}," in point.id
                if congestion and "flow" in point.flows:
                    assert point.flows["flow"].congestion == congestion


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("cubic+7.3", "cubic+7.3: no such stack or kernel"),
        ("fast", "fast: needs alpha_packets"),
        ("fixed", "fixed: needs window_packets"),
        ("fast0", 'fast0: no such congestion control; did you mean "fast"?'),
        ("fast65536", 'fast65536: no such congestion control; did you mean "fast"?'),
        ("cubic30", 'cubic30: no such congestion control; did you mean "cubic"?'),
        ("quic-vegas", "quic-vegas: no such congestion control of QUIC"),
        ("vgas", 'vgas: no such congestion control; did you mean "vegas"?'),
    ],
)
def test_a_parameter_that_is_none(name: str, sentence: str) -> None:
    """An unknown control, a family without its parameter, or one out of range is refused."""
    with pytest.raises(UsageError) as raised:
        control_of(name)
    assert str(raised.value) == sentence


def test_quic_stands_where_flows_under_test_did() -> None:
    """A QUIC program has each flow's name, sender and start; the points are the row's own."""
    rows = {row.id: row for row in rows_for(load_suite("quick"), "quic-bbr", None)}
    itself = load_points(rows["quick-itself"])[0]
    flow, flow_client, other, other_client = itself.experiment.programs
    assert itself.experiment.flows == []
    assert [each.name for each in (flow, other)] == ["flow", "other"]
    assert {each.host for each in (flow, other)} == {"h1"}
    assert {each.host for each in (flow_client, other_client)} == {"h2"}
    assert {each.environment["CC"] for each in (flow, other)} == {"bbr"}
    assert flow.udp_port != other.udp_port
    assert (flow_client.start_s, other_client.start_s) == (0.001, 0.05)
    assert {"goodput.flow", "goodput.other"} <= {*itself.metrics}
    beside = load_points(rows["quick-beside"])
    assert [each.name for each in beside[0].experiment.flows] == ["other"]
    assert {point.values["control"] for point in beside} == {"quic-bbr"}


def test_a_row_that_a_program_cannot_stand_in_says_why() -> None:
    """A row with flow fields that QUIC cannot have gets no run, and its cells the reason."""
    suite = load_suite("quick")
    without = {"quic-cubic": rows_without(suite, "quic-cubic")}
    why = "not for a program: the row sets flows.flow.count"
    assert without["quic-cubic"] == {"quick-several": why}
    assert rows_without(suite, "vegas") == {}
    rows = {row.id for row in rows_for(suite, "quic-cubic", None)}
    assert {row.id for row in suite.experiments} - rows == {"quick-several"}
    failed = {"quick-several@control=reno,buffer=1bdp": "reno panicked"}
    lines = make_card(suite, ("quic-cubic", "reno"), [], failed, without).lines
    assert {cell.doubt for line in lines for cell in line.cells.values()} == {why, "reno panicked"}


def test_a_row_that_an_axis_changes_the_flow_of_is_not_for_a_program() -> None:
    """A row whose axis sets a field of the flow under test has no QUIC program."""
    reasons = rows_without(load_suite("two-way"), "quic-cubic")
    assert reasons["two-way-cable"] == "not for a program: the row sets flows.up.count"


SHOWS = [{"metric": "goodput.flow", "better": "more"}]
ROW = {"asks": "Is it fast?", "source": "us", "shows": SHOWS}
BASE: dict[str, Any] = {
    "title": "One flow",
    "topology": {"name": "two_node"},
    "profile": "access-8mbit",
    "flows": [{"name": "flow", "from": "h1", "to": "h2", "congestion": "reno"}],
    "matrix": {"control": {"set": ["flows.flow.congestion"]}},
    "duration_s": 4,
    "warm_up_s": 1,
}
TRACE = {
    "schema": 1,
    "title": "a trace",
    "directions": {
        "forward": {"rate": {"mahimahi": "trace"}, "delay_ms": 1, "queue_packets": 9},
        "reverse": {"rate_mbit": 1, "delay_ms": 1, "queue_packets": 9},
    },
}


def _suite(folder: Path, **changes: Any) -> str:
    """Write a suite of one row; return its file."""
    columns = ["reno", "cubic", "bbr"]
    fields = {"schema": 2, "title": "One row", "columns": columns, "base": BASE}
    path = folder / "mine.yml"
    path.write_text(yaml.safe_dump({**fields, "rows": {"alone": ROW}, **changes}, sort_keys=False))
    return str(path)


def test_a_suite_of_ones_own_is_vetted_and_a_row_of_it_runs(tmp_path: Path) -> None:
    """`vet` takes a suite's file, and its rows by FILE/ROW; the columns are the axis's values."""
    name = _suite(tmp_path, rows={"alone": ROW, "kind": {**ROW, "shows": [], "cannot": "unseen"}})
    points = [f"{name}/alone@control={each}" for each in ("reno", "cubic", "bbr")]
    assert point_names(f"{name}/alone") == points
    assert twoway("vet", name).stderr.endswith("1 experiment is sound: 3 points\n")
    done = twoway("run", name)
    assert done.returncode == 2
    assert f"twoway: {name}: is a suite, not an experiment" in done.stderr


def test_a_suite_in_a_folder_is_told_where_its_rows_belong(tmp_path: Path) -> None:
    """A suite of version 1, whose rows were files, is refused with what to do."""
    name = _suite(tmp_path, schema=1)
    for words in (("vet", name), ("score", "--suite", name), ("run", f"{name}/alone")):
        done = twoway(*words)
        assert done.returncode == 2, words
        assert f"{name}: schema: must be 2, got 1" in done.stderr
        assert "hint: a suite is one file now: write the fields of its experiment" in done.stderr


def test_a_suite_is_named_by_its_content(tmp_path: Path) -> None:
    """A suite's digest changes with its fields, not with comments or the layout of its file."""
    name = _suite(tmp_path)
    before = load_suite(name).sha256
    text = Path(name).read_text("utf-8")
    Path(name).write_text(f"# a comment\n{text}\n\n")
    assert load_suite(name).sha256 == before
    changed = _suite(tmp_path, base={**BASE, "duration_s": 5})
    assert load_suite(changed).sha256 != before


@pytest.mark.parametrize("file", ["two_node.py", "line.yml", "trace", "own.c", "words/more.txt"])
def test_a_suites_digest_has_the_files_that_rows_name(tmp_path: Path, file: str) -> None:
    """A topology, profile, trace, module or program's file counts, if only an axis names it."""
    topology = Path("topologies/two_node.py").read_text("utf-8")
    module = 'struct tcp_congestion_ops own = { .name = "own" };\n'
    (tmp_path / "words").mkdir()
    for name, text in {
        "two_node.py": topology,
        "line.yml": yaml.safe_dump(TRACE),
        "trace": "1\n2\n",
        "own.c": module,
        "words/more.txt": "words\n",
        "other": "not named\n",
    }.items():
        (tmp_path / name).write_text(text)
    matrix = {**BASE["matrix"], "line": {"set": ["profile"], "to": ["access-8mbit", "line"]}}
    program = {"name": "reader", "host": "h1", "command": ["cat"], "files": ["words"]}
    more = {"matrix": matrix, "own_modules": ["own.c"], "programs": [program]}
    name = _suite(tmp_path, base={**BASE, **more})
    before = load_suite(name).sha256
    (tmp_path / "other").write_text("else\n")
    assert load_suite(name).sha256 == before
    with (tmp_path / file).open("a") as opened:
        opened.write("3\n" if file == "trace" else "# other\n" if file != "own.c" else "\n")
    assert load_suite(name).sha256 != before


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {
                "base": {
                    **BASE,
                    "matrix": {"control": {**BASE["matrix"]["control"], "to": ["reno"]}},
                }
            },
            "rows.alone.experiment.matrix: the axis `control` must have the values reno, cubic",
        ),
        (
            {"base": {key: value for key, value in BASE.items() if key != "matrix"}},
            "rows.alone.experiment.matrix: the axis `control` must have the values reno, cubic",
        ),
        ({"rows": {}}, "rows"),
        (
            {"harm": {"alone": "alone", "itself": "gone", "beside": "gone"}},
            "rows.gone: `harm` needs a row that shows goodput.flow, goodput.other",
        ),
        ({"colour": "red"}, "colour"),
        ({"rows": {"gone": {"asks": "a", "source": "b", "shows": []}}}, "rows.gone: needs"),
        ({"rows": {"gone": {"asks": "a", "source": "b", "cannot": ""}}}, "rows.gone.cannot"),
        (
            {"rows": {"alone": {**ROW, "experiment": {"duration_s": "long"}}}},
            "rows.alone.experiment: duration_s: must be a valid number, got ",
        ),
        (
            {"rows": {"alone": {**ROW, "experiment": {"profile": "nosuch"}}}},
            "rows.alone.experiment: profile: tc-profiles/nosuch.yml: no such profile",
        ),
        (
            {"rows": {"alone": {**ROW, "experiment": {"profile": {"directions": {"up": {}}}}}}},
            "rows.alone.experiment: profile.directions.up.queue_packets: required",
        ),
    ],
)
def test_a_suite_with_problems_is_refused(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    """A suite's problems are reported with file, row and field."""
    with pytest.raises(SpecError) as raised:
        load_suite(_suite(tmp_path, **changes))
    (problem, *_) = raised.value.problems
    assert problem.startswith(str(tmp_path / "mine.yml"))
    assert sentence in problem


def test_a_row_that_no_run_shows_has_no_experiment(tmp_path: Path) -> None:
    """A row with `cannot` runs nothing, and each of its cells has that reason."""
    row = {"asks": "Is it kind?", "source": "us", "cannot": "nothing measures it"}
    suite = load_suite(_suite(tmp_path, rows={"kind": row}))
    assert suite.experiments == ()
    card = make_card(suite, suite.said.columns, [], {}, {})
    (line,) = card.lines
    assert {cell.doubt for cell in line.cells.values()} == {"nothing measures it"}
    assert card_table(card)[1].startswith("kind: no run shows it ")


def test_a_point_that_no_control_ran_is_on_the_card() -> None:
    """A point without any finished run has its line, and each cell the reason."""
    suite = load_suite("quick")
    point = "line=20mbit-100ms,buffer=1bdp"
    failed = {f"quick-alone@control={each},{point}": f"{each} panicked" for each in ("reno", "bbr")}
    lines = make_card(suite, suite.said.columns, [], failed, {}).lines
    assert [line.at for line in lines] == ["line 20mbit-100ms, buffer 1bdp"] * 2
    doubts = {control: cell.doubt for control, cell in lines[0].cells.items()}
    assert doubts == {"reno": "reno panicked", "cubic": "not run", "bbr": "bbr panicked"}


def test_a_row_of_one_point_says_why_it_has_no_run() -> None:
    """In a row of one point each control's cell has the reason of its own failure."""
    suite = load_suite("quick")
    failed = {"quick-alone@control=bbr": "bbr panicked", "quick-alone@control=bbr2": "bbr2 hung"}
    lines = make_card(suite, ("bbr", "bbr2", "reno"), [], failed, {}).lines
    doubts = {control: cell.doubt for control, cell in lines[0].cells.items()}
    assert doubts == {"bbr": "bbr panicked", "bbr2": "bbr2 hung", "reno": "not run"}


def test_a_quick_suite_has_three_seeds_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three runs a cell are the default below two minutes, with one more control than columns."""
    assert {
        name: usual_seeds(load_suite(name)) for name in ("bbr", "quic", "quick", "share", "ecn")
    } == {**dict.fromkeys(("quic", "quick", "share", "ecn")), "bbr": 3}
    quick = load_suite("quick")
    for cost_s, seeds in ((59, 3), (60, None)):  # three columns and one more, three times, on two
        monkeypatch.setattr("twoway.description.suite._COST_S", {"quick": cost_s, "switch": 1})
        assert usual_seeds(quick) == seeds
    assert usual_seeds(load_suite("switch")) is None  # its rows say three


def test_a_suite_that_is_none() -> None:
    """An unknown suite is refused with the names of all suites."""
    with pytest.raises(UsageError, match="nosuch: no such suite"):
        load_suite("nosuch")


def test_a_module_names_its_control(tmp_path: Path) -> None:
    """A C file as a control stands for the one control that it registers."""
    file = tmp_path / "tcp_own.c"
    file.write_text('struct tcp_congestion_ops own = { .name = "other" };\n')
    control, module = control_of(str(file))
    assert (control, module and module.name) == ("other", "tcp_own")
    assert control_of("vegas") == ("vegas", None)
    file.write_text("int nothing;\n")
    with pytest.raises(SpecError, match="must register one congestion control, registers none"):
        control_of(str(file))


def test_a_module_belongs_to_each_row_whatever_its_name(tmp_path: Path) -> None:
    """Each row of a module's control has the module's sources, and nothing else of its folder."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "Kbuild").write_text("obj-m := tcp_own.o\n")
    (folder / "tcp_own.c").write_text('struct tcp_congestion_ops own = { .name = "../x" };\n')
    (folder / "key").symlink_to("/etc/shadow")
    control, module = control_of(f"{folder}/")
    assert control == "../x"
    for row in rows_for(load_suite("quick"), control, module):
        (own,) = row.modules
        assert {*own.sources} == {"Kbuild", "tcp_own.c"}
        with pytest.raises(SpecError, match=r"matrix\.control\.to: .* cannot be"):
            load_points(row)

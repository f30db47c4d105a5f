"""Suites of situations for congestion controls: those of the checkout, and refusals."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from twoway.description.point import point_names
from twoway.description.suite import control_of, load_suite, rows_without, suite_names, write_rows
from twoway.errors import SpecError, UsageError
from twoway.paths import SUITES
from twoway.report.card import card_table, make_card
from twoway.runs.points import load_point


@pytest.mark.parametrize("name", suite_names())
def test_every_row_is_sound_at_every_point(name: str) -> None:
    """Each row's experiment is valid at all points, has the metrics shown, and is listed."""
    suite = load_suite(name)
    rows = {row: each.shows for row, each in suite.said.rows.items() if each.shows}
    assert {path.stem for path in suite.folder.glob(f"{name}-*.yml")} == {*rows}
    for file in suite.files:
        for point in point_names(str(file)):
            assert {each.metric for each in rows[file.stem]} <= {*load_point(point).metrics}


def test_another_control_has_the_same_points(tmp_path: Path) -> None:
    """The rows of another control differ only in the axis `control` and in its module."""
    suite = load_suite("quick")
    files = write_rows(suite, "vegas", None, tmp_path / "vegas")
    for ours, theirs in zip(suite.files, files, strict=True):
        points = [name.partition("@")[2] for name in point_names(str(theirs))]
        expected = [name.partition("@control=reno")[2] for name in point_names(str(ours))]
        assert points == [f"control=vegas{rest}" for rest in expected if rest]
    assert load_point(f"{files[0]}@{points_of(files[0])[0]}").flows["flow"].congestion == "vegas"


def test_a_control_of_a_family_has_its_parameter_in_its_name(tmp_path: Path) -> None:
    """The control fast30 sets `fast` and its parameter 30 in every flow of the rows' axis."""
    assert control_of("fast30") == ("fast30", None)
    suite = load_suite("two-way")
    file = write_rows(suite, "fast30", None, tmp_path / "fast")[0]
    points = points_of(file)
    assert {point.partition(",")[0] for point in points} == {"control=fast30"}
    for flow in load_point(f"{file}@{points[-1]}").flows.values():
        assert (flow.congestion, flow.alpha_packets) == ("fast", 30)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("fast", "fast: needs alpha_packets"),
        ("fixed", "fixed: needs window_packets"),
        ("fast0", 'fast0: no such congestion control; did you mean "fast"?'),
        ("fast65536", 'fast65536: no such congestion control; did you mean "fast"?'),
        ("cubic30", 'cubic30: no such congestion control; did you mean "cubic"?'),
        ("quic-vegas", "quic-vegas: no such congestion control of QUIC"),
    ],
)
def test_a_parameter_that_is_none(name: str, sentence: str) -> None:
    """A family without its parameter, or with a parameter out of range, is refused."""
    with pytest.raises(UsageError) as raised:
        control_of(name)
    assert str(raised.value) == sentence


def test_quic_stands_where_flows_under_test_did(tmp_path: Path) -> None:
    """A QUIC program has each flow's name, sender and start; the points are the row's own."""
    suite = load_suite("quick")
    files = {path.stem: path for path in write_rows(suite, "quic-bbr", None, tmp_path / "quic")}
    itself = load_point(f"{files['quick-itself']}@{points_of(files['quick-itself'])[0]}")
    flow, flow_client, other, other_client = itself.experiment.programs
    assert itself.experiment.flows == []
    assert [each.name for each in (flow, other)] == ["flow", "other"]
    assert {each.host for each in (flow, other)} == {"h1"}
    assert {each.host for each in (flow_client, other_client)} == {"h2"}
    assert {each.environment["CC"] for each in (flow, other)} == {"bbr"}
    assert flow.udp_port != other.udp_port
    assert (flow_client.start_s, other_client.start_s) == (0.001, 0.05)
    assert {"goodput.flow", "goodput.other"} <= {*itself.metrics}
    beside = load_point(f"{files['quick-beside']}@{points_of(files['quick-beside'])[0]}")
    assert [each.name for each in beside.experiment.flows] == ["other"]
    points = {name.partition("=")[2].partition(",")[0] for name in points_of(files["quick-beside"])}
    assert points == {"quic-bbr"}


def test_a_row_that_a_program_cannot_stand_in_says_why(tmp_path: Path) -> None:
    """A row with flow fields that QUIC cannot have gets no file, and its cells the reason."""
    suite = load_suite("quick")
    without = {"quic-cubic": rows_without(suite, "quic-cubic")}
    why = "not for a program: the row sets flows.flow.count"
    assert without["quic-cubic"] == {"quick-several": why}
    assert rows_without(suite, "vegas") == {}
    files = write_rows(suite, "quic-cubic", None, tmp_path / "quic")
    assert {*suite.files} - {suite.folder / path.name for path in files} == {
        suite.folder / "quick-several.yml"
    }
    failed = {"quick-several@control=reno,buffer=1bdp": "reno panicked"}
    lines = make_card(suite, ("quic-cubic", "reno"), [], failed, without).lines
    assert {cell.doubt for line in lines for cell in line.cells.values()} == {why, "reno panicked"}


def test_a_row_that_an_axis_changes_the_flow_of_is_not_for_a_program() -> None:
    """A row whose axis sets a field of the flow under test has no QUIC program."""
    reasons = rows_without(load_suite("two-way"), "quic-cubic")
    assert reasons["two-way-cable"] == "not for a program: the row sets flows.up.count"


def points_of(file: Path) -> list[str]:
    """List the names of a sweep's points."""
    return [name.partition("@")[2] for name in point_names(str(file))]


def _suite(folder: Path, **changes: Any) -> str:
    """Write a suite of one row; return its file."""
    shows = [{"metric": "goodput.flow", "better": "more"}]
    fields: dict[str, Any] = {
        "schema": 1,
        "title": "One row",
        "columns": ["reno", "cubic", "bbr"],
        "rows": {"quick-alone": {"asks": "Is it fast?", "source": "us", "shows": shows}},
    }
    (folder / "mine").mkdir()
    for name in ("quick-alone", "line"):
        (folder / f"mine/{name}.yml").write_text((SUITES / f"quick/{name}.yml").read_text())
    (folder / "mine.yml").write_text(yaml.safe_dump({**fields, **changes}))
    return str(folder / "mine.yml")


def test_a_suite_is_named_by_its_content(tmp_path: Path) -> None:
    """A suite's digest changes with a file of its folder."""
    name = _suite(tmp_path)
    before = load_suite(name).sha256
    assert load_suite(name).sha256 == before
    with (tmp_path / "mine/line.yml").open("a") as file:
        file.write("# other\n")
    assert load_suite(name).sha256 != before


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"columns": ["reno"]}, "axis `control` must have the values reno"),
        ({"rows": {}}, "rows"),
        (
            {"harm": {"alone": "quick-alone", "itself": "gone", "beside": "gone"}},
            "rows.gone: `harm` needs a row that shows goodput.flow, goodput.other",
        ),
        ({"colour": "red"}, "colour"),
        (
            {"rows": {"gone": {"asks": "a", "source": "b", "shows": []}}},
            "rows.gone: needs",
        ),
        ({"rows": {"gone": {"asks": "a", "source": "b", "cannot": ""}}}, "rows.gone.cannot"),
        (
            {
                "rows": {
                    "gone": {
                        "asks": "a",
                        "source": "b",
                        "shows": [{"metric": "goodput.flow", "better": "more"}],
                    }
                }
            },
            "rows.gone: no such file as",
        ),
    ],
)
def test_a_suite_with_problems_is_refused(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    """A suite's problems are reported with file and field."""
    with pytest.raises(SpecError) as raised:
        load_suite(_suite(tmp_path, **changes))
    (problem, *_) = raised.value.problems
    assert problem.startswith(str(tmp_path / "mine.yml"))
    assert sentence in problem


def test_a_row_that_no_run_shows_has_no_experiment(tmp_path: Path) -> None:
    """A row with `cannot` needs no file, and each of its cells has that reason."""
    row = {"asks": "Is it kind?", "source": "us", "cannot": "nothing measures it"}
    suite = load_suite(_suite(tmp_path, rows={"mine-kind": row}))
    assert suite.files == []
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


def test_a_control_that_is_none() -> None:
    """A control that the kernel does not have is refused, and the closest name suggested."""
    with pytest.raises(UsageError) as raised:
        control_of("vgas")
    assert str(raised.value) == 'vgas: no such congestion control; did you mean "vegas"?'
    assert raised.value.hint.startswith("there are ")


def test_a_modules_sources_alone_are_written(tmp_path: Path) -> None:
    """Besides the rows only a module's sources are written, whatever the control's name."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "Kbuild").write_text("obj-m := tcp_own.o\n")
    (folder / "tcp_own.c").write_text('struct tcp_congestion_ops own = { .name = "../x" };\n')
    (folder / "key").symlink_to("/etc/shadow")
    control, module = control_of(f"{folder}/")
    assert control == "../x"
    to = tmp_path / "made/0"
    write_rows(load_suite("quick"), control, module, to)
    assert {path.name for path in (to / "tcp_own").iterdir()} == {"Kbuild", "tcp_own.c"}
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "made"}


@pytest.mark.parametrize("kind", ["link", "pipe", "large"])
def test_a_suites_folder_is_plain(tmp_path: Path, kind: str) -> None:
    """A suite's folder with a link out of it, a pipe or 16 MiB is refused unread."""
    name = _suite(tmp_path)
    file = tmp_path / "mine/other"
    if kind == "link":
        file.symlink_to("/etc/hostname")
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        with file.open("wb") as opened:
            opened.truncate((16 << 20) + 1)
    said = {"link": "leads out of it", "pipe": "is no plain file", "large": "more than 16 MiB"}
    with pytest.raises(SpecError, match=said[kind]):
        load_suite(name)

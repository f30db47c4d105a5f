"""Figures of a sweep as files for print: kinds, styles, captions, tables."""

import shlex
from pathlib import Path

import pytest
from support.swept_runs import swept, write_points

from twoway.cli import main
from twoway.errors import UsageError
from twoway.report.figure_files import STYLES, Print, sweep_figures
from twoway.report.paper_text import latex, markdown_table
from twoway.report.print_figures import drawn_figures
from twoway.report.results import Experiment

PLAIN = Print("ieee", None, False, "twoway figures swept")


def test_a_sweep_is_written_for_a_paper(tmp_path: Path) -> None:
    """A PDF is as wide as a column and embeds TrueType; a caption has command and identity."""
    into = tmp_path / "figures"
    paths = sweep_figures(swept(tmp_path), ["efficiency"], [], into, PLAIN)
    stems = ("swept-efficiency", "map-efficiency")
    names = {f"{stem}.{ending}" for stem in stems for ending in ("pdf", "svg", "png", "csv")}
    assert {path.name for path in paths} == {*names, "figures.tex", "answer.tex", "answer.md"}
    pdf = (into / "swept-efficiency.pdf").read_bytes()
    assert b"/MediaBox [ 0 0 252 " in pdf
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    caption = (into / "figures.tex").read_text()
    assert "seed 1, 6 runs, identities' digest" in caption
    assert r"twoway figures swept." in caption
    head, row = (into / "swept-efficiency.csv").read_text().splitlines()[:2]
    assert (head, row) == (
        'line,look,"window, packets",efficiency,to',
        '"first, acks every-segment",marked,4.0,8.8,',
    )
    assert r"16 & every-segment & - & - \\" in (into / "answer.tex").read_text()
    assert "| 4 | delayed | 4.4 | 4.4 |" in (into / "answer.md").read_text()


def test_one_point_has_distributions_and_a_table(tmp_path: Path) -> None:
    """One finished point makes no curve; its distribution and its answer are written."""
    whole, into = swept(tmp_path), tmp_path / "figures"
    paths = sweep_figures(Experiment(whole.id, whole.results[:1]), ["efficiency"], [], into, PLAIN)
    assert {path.stem for path in paths} == {"cdf-efficiency", "figures", "answer"}


def test_a_caption_has_the_whole_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The caption's command draws the same figure again: it has metrics, style and folder."""
    write_points(tmp_path)
    words = ["figures", "swept", "--metric", "half=efficiency.first / 2", "--style", "ieee"]
    words += ["--results", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["twoway", *words])
    assert main() == 0
    assert "figures.tex" in capsys.readouterr().out
    caption = (tmp_path / "swept/figures/figures.tex").read_text()
    assert latex(shlex.join(["twoway", *words])) in caption


def test_kinds_of_figures(tmp_path: Path) -> None:
    """A distribution, boxes and a map are of the values of each point."""
    cdf, box, cells = drawn_figures(
        swept(tmp_path), ["cdf:efficiency.*", "box:efficiency.first", "map:efficiency.first"]
    )
    line = next(each for each in cdf.lines if each.name == "window 8, acks delayed")
    assert cdf.caption.endswith(" Left out: 2 of 12 values, which are undefined.")
    assert box.caption.endswith(" Left out: 1 of 6 values, which are undefined.")
    assert (line.x.tolist(), line.y.tolist()) == ([8.8, 8.8, 8.8], [0, 0.5, 1])
    assert {figure.x_label for figure in (box, cells)} == {"window, packets"}
    assert (box.x_names, [each.name for each in box.lines]) == (
        ("4", "8", "16"),
        ["acks every-segment", "acks delayed"],
    )
    (grid,) = cells.lines
    assert sorted(zip(grid.x, grid.y, grid.highest(), strict=True))[:2] == [
        (0, 0, 8.8),
        (0, 1, 4.4),
    ]
    assert len(grid.x) == 5  # one of six points is undefined


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("efficency", 'no such metric; did you mean "efficiency"'),
        ("pie:efficiency", "no such kind"),
        ("map:none", "no such metric"),
    ],
)
def test_unknown_figures_are_refused(tmp_path: Path, name: str, said: str) -> None:
    """A wrong name of a figure is refused with the ones that exist."""
    with pytest.raises(UsageError) as found:
        drawn_figures(swept(tmp_path), [name])
    assert said in str(found.value)


def test_a_style_of_ones_own_replaces_ours(tmp_path: Path) -> None:
    """A file of Matplotlib sets the size; an unknown style leaves no file."""
    experiment, into = swept(tmp_path), tmp_path / "figures"
    with pytest.raises(UsageError, match="--style: none"):
        sweep_figures(experiment, [], ["efficiency"], into, Print("none.mplstyle", None, False, ""))
    assert not list(into.glob("*"))
    style = tmp_path / "mine.mplstyle"
    style.write_text("figure.figsize: 2, 2\naxes.prop_cycle: cycler('color', ['010203'])\n")
    sweep_figures(experiment, [], ["efficiency"], into, Print(str(style), None, False, ""))
    svg = (into / "swept-efficiency.svg").read_text()
    assert 'width="144pt"' in svg
    assert "#010203" in svg
    assert [*STYLES] == ["acm", "acm-wide", "ieee", "ieee-wide", "slides"]


def test_latex_is_escaped() -> None:
    """Characters of LaTeX and Markdown are printed as they are, in one paragraph or cell."""
    assert latex("50 % of a_b {c} & ± 2") == r"50 \% of a\_b \{c\} \& $\pm$ 2"
    assert latex("a\n\n| <b>") == r"a \textbar{} \textless{}b\textgreater{}"
    assert "| a \\| &lt;b> |" in markdown_table([["x"], ["a\n| <b>"]])

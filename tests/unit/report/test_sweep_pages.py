"""The page of a sweep: in progress, with one point, with a thousand; what its files say."""

import argparse
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chromium import console, launched, opened  # noqa: F401 - the fixture "browser"
from selenium.webdriver.common.by import By
from support.swept_runs import swept, write_points

from twoway.commands import sweep
from twoway.commands.options import add_options
from twoway.commands.sweep import judge_points
from twoway.contract.verdicts import BAD, GOOD, VERDICTS, Verdicts
from twoway.report.results import Experiment, read_results
from twoway.report.sweep_page import write_sweep_pages
from twoway.sweeps.sweep import Outcome


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 1000])
def test_a_page_of_many_points_draws_and_filters(browser: Any, tmp_path: Path, count: int) -> None:
    """Each point has a row, two points or more have figures, and a word finds one row."""
    sweep = swept(tmp_path)
    first, matrix = sweep.results[0], dict(sweep.said.matrix)
    windows = list(range(1, count + 1))
    matrix["window"] = matrix["window"].model_copy(update={"to": windows})
    results = []
    for window in windows:
        said = first.manifest.experiment.model_copy(
            update={"id": f"swept@window={window},acks=delayed", "matrix": matrix}
        )
        point = {"window": window, "acks": "delayed"}
        manifest = first.manifest.model_copy(update={"experiment": said, "point": point})
        results.append(replace(first, manifest=manifest))
    (page,) = write_sweep_pages([Experiment("swept", tuple(results))], tmp_path, {})
    browser.get(page.as_uri())
    assert len(browser.find_elements(By.CSS_SELECTOR, "table.filtered tbody tr")) == count
    assert bool(browser.find_elements(By.CSS_SELECTOR, ".plot canvas")) is (count > 1)
    browser.find_element(By.ID, "filter").send_keys(str(count))
    seen = browser.find_elements(By.CSS_SELECTOR, "table.filtered tbody tr:not([hidden])")
    assert len(seen) == 1


@pytest.mark.slow
def test_a_metric_without_a_value_leaves_a_gap(browser: Any, tmp_path: Path) -> None:
    """A point without a value keeps its row, with a dash; markup in a title is text."""
    first, *others = swept(tmp_path).results
    name = "efficiency.first"
    undefined = first.metrics.metrics[name].model_copy(update={"value": None})
    metrics = first.metrics.model_copy(
        update={"metrics": {**first.metrics.metrics, name: undefined}}
    )
    titled = first.manifest.experiment.model_copy(update={"title": "<b>bold</b>"})
    manifest = first.manifest.model_copy(update={"experiment": titled})
    results = (replace(first, metrics=metrics, manifest=manifest), *others)
    (page,) = write_sweep_pages([Experiment("swept", results)], tmp_path, {}, ["efficiency"])
    browser.get(page.as_uri())
    assert "<b>bold</b>" in browser.find_element(By.TAG_NAME, "h1").text
    rows = browser.find_elements(By.CSS_SELECTOR, "table.filtered tbody tr")
    assert len(rows) == len(results)
    assert "\N{EN DASH}" in rows[0].text
    assert "\N{EN DASH}" not in rows[1].text
    assert browser.find_elements(By.CSS_SELECTOR, ".plot canvas")
    assert console(browser) == []


# The number of points that are as their files say, on a sweep's page and the console.


def test_a_finding_that_is_not_as_stated_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that does not confirm its finding fails nothing, but its point is counted."""
    runs = write_points(tmp_path)
    for run in runs:
        judged = Verdicts.read(run / VERDICTS)
        judged.model_copy(update={"predictions": (), "claims": ()}).write(run / VERDICTS)
    verdicts = [Verdicts.read(run / VERDICTS) for run in runs]
    outcomes = [
        Outcome(name=run.parent.name, folder=run).with_verdicts(each)
        for run, each in zip(runs, verdicts, strict=True)
    ]
    assert judge_points(Namespace(), outcomes) == GOOD
    (page,) = write_sweep_pages(read_results(runs), tmp_path, {})
    sentence = (
        "3 of 6 points are as their files say; "
        "3 have a finding that is not as stated, which fails no run"
    )
    assert sentence in capsys.readouterr().err.splitlines()
    assert sentence in page.read_text()


def test_a_failed_point_is_printed_with_the_command_that_runs_it_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The command that runs a failed point again has the sweep's results, backend and kernel."""
    failed = Outcome(name="my file.yml@window=8", error="no", exit_code=BAD)
    args = Namespace(results=Path("/tmp/x"), backend="uml", kernel="newest")
    assert judge_points(args, [failed]) == BAD
    again = "twoway run 'my file.yml@window=8' --results /tmp/x --kernel newest"
    assert f"     {again}" in capsys.readouterr().err.splitlines()


# The page of a sweep in progress, or interrupted.


OnOutcome = Callable[[list[Outcome], list[str]], None]


def _arguments(results: Path, *options: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser, *sweep.OPTIONS)
    return parser.parse_args(["swept", "--results", str(results), *options])


@pytest.mark.parametrize("watch", [True, False])
def test_a_page_while_points_come_and_after_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watch: bool
) -> None:
    """A page being watched counts the points left and reloads; after an interrupt it does not.

    The page lists points without a run, escaped, and shows those with one.
    """
    folders = write_points(tmp_path)
    outcomes = [Outcome(folder.parent.name, folder, id=folder.parent.name) for folder in folders]
    page = tmp_path / "swept/index.html"

    def interrupted(
        _: argparse.Namespace, __: object, ___: list[str], on_outcome: OnOutcome, ____: object
    ) -> list[Outcome]:
        on_outcome(outcomes[:-1], ["swept@<b>"])
        assert page.exists() is watch
        if watch:
            assert "1 still to come" in page.read_text("utf-8")
            assert "location.reload" in page.read_text("utf-8")
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep, "named_points", lambda *_: {})
    monkeypatch.setattr(sweep, "run_all", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep.run(_arguments(tmp_path, *(["--watch"] if watch else [])))
    text = page.read_text("utf-8")
    assert "<code>swept@&lt;b&gt;</code>: the sweep was interrupted" in text
    assert "location.reload" not in text
    assert outcomes[0].folder
    assert outcomes[0].folder.name in text

"""The page of a sweep in progress, or interrupted."""

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest
from support.swept_runs import write_points

from twoway.commands import sweep
from twoway.commands.options import add_options
from twoway.sweeps.sweep import Outcome

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

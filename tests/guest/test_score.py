"""`twoway score`: a user's control in a small suite, and its page in a browser."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from chromium import console, launched, opened  # noqa: F401 - the fixture "browser"
from selenium.webdriver.common.by import By
from support.running import ROOT, measure
from support.runs import carry_out
from support.warm_command import twoway

import twoway as twoway_package
from twoway.backends.sandbox import GUEST_PATH
from twoway.description.suite import control_of, load_suite, rows_for
from twoway.report.card import Card, card_table
from twoway.runs.points import load_points

pytestmark = pytest.mark.usefixtures("guest")

AIMD = ROOT / "experiments/beyond/modules/tcp_aimd.c"
ROW = {
    "asks": "Is it <b>fast</b>?",
    "source": "us",
    "shows": [
        {"metric": "goodput.flow", "better": "more"},
        {"metric": "retransmitted.flow", "better": "less"},
        {"metric": "completion_time_median", "better": "less"},
    ],
}
EXPERIMENT = {
    "title": "Alone",
    "topology": {"name": "two_node"},
    "profile": "access-8mbit",
    "flows": [{"name": "flow", "from": "h1", "to": "h2", "congestion": "reno"}],
    "matrix": {
        "control": {"set": ["flows.flow.congestion"]},
        "queue": {"set": ["profile.forward.queue_packets"], "to": [5, 50]},
    },
    "duration_s": 4,
    "warm_up_s": 1,
}


_REGISTER = "return tcp_register_congestion_control"


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a suite of one row, and score a module in it beside one that fails to load."""
    folder = tmp_path_factory.mktemp("scored")
    suite = {
        "schema": 2,
        "title": "Small",
        "columns": ["reno", "bbr"],
        "base": EXPERIMENT,
        "rows": {"alone": ROW},
    }
    (folder / "small.yml").write_text(yaml.safe_dump(suite))
    text = AIMD.read_text().replace('"aimd"', '"broken"')
    assert _REGISTER in text
    (folder / "tcp_broken.c").write_text(text.replace(_REGISTER, f"return -EINVAL;\n\t{_REGISTER}"))
    _carry_out(folder, str(AIMD), folder / "results")
    done = _score(folder, AIMD, folder / "tcp_broken.c")
    assert done.returncode == 1
    assert "small-alone@control=broken,queue=5: " in done.stderr
    return folder


def _carry_out(folder: Path, control: str, results: Path) -> None:
    """Run the suite's columns and a control, or copy their kept runs, for the command to keep."""
    suite = load_suite(str(folder / "small.yml"))
    for row in [*suite.experiments, *rows_for(suite, *control_of(control))]:
        for point in load_points(row, None):
            carry_out(point, results)


def _score(folder: Path, *controls: Path | str) -> Any:
    suite = ("--suite", folder / "small.yml", "--results", folder / "results")
    return twoway("score", *controls, *suite)


def _card(folder: Path) -> Card:
    return Card.read(folder / "results/score/small/card.json")


def test_a_card_has_a_number_for_each_control(scored: Path) -> None:
    """Each control has its number, its standing against the best, and its runs' ids."""
    card = _card(scored)
    assert card.columns == ("aimd", "broken", "reno", "bbr")
    small, large = (line for line in card.lines if line.metric == "goodput.flow")
    assert (small.at, large.at) == ("queue 5", "queue 50")
    # With its defaults the module halves its window as Reno does.
    assert small.cells["aimd"].value == small.cells["reno"].value
    assert small.cells["bbr"].runs == ("small-alone@control=bbr,queue=5",)
    assert small.cells["bbr"].standing == "near"
    assert small.cells["broken"].value is None
    assert "tcp_broken" in small.cells["broken"].doubt
    again = next(line for line in card.lines if line.metric == "retransmitted.flow")
    assert again.cells["aimd"].standing == "near"
    undefined = next(line for line in card.lines if line.metric == "completion_time_median")
    assert undefined.cells["reno"].doubt == "undefined in this run"


def test_quic_is_a_column(scored: Path, tmp_path: Path) -> None:
    """QUIC has the row's points, a goodput that fits the link, and reasons in its empty cells."""
    if shutil.which("gtlsserver", path=GUEST_PATH) is None:
        pytest.skip("ngtcp2 is not installed here")
    _carry_out(scored, "quic-cubic", tmp_path)
    suite = ("--suite", scored / "small.yml", "--results", tmp_path)
    assert twoway("score", "quic-cubic", *suite).returncode == 0
    card = Card.read(tmp_path / "score/small/card.json")
    assert card.columns == ("quic-cubic", "reno", "bbr")
    fast = [line for line in card.lines if line.metric == "goodput.flow"]
    assert [line.at for line in fast] == ["queue 5", "queue 50"]
    for line in fast:
        # 8 Mbit/s of IP packets: UDP payload and 28 bytes of headers.
        assert 4 < (line.cells["quic-cubic"].value or 0) < 8 * (1500 - 28) / 1500
    again = next(line for line in card.lines if line.metric == "retransmitted.flow")
    assert again.cells["quic-cubic"].value is None
    assert again.cells["quic-cubic"].doubt.startswith("not for a program: ")
    assert again.cells["reno"].value is not None


def test_the_same_card_twice(scored: Path) -> None:
    """A second call keeps the runs, prints the same table and writes the same bytes."""
    files = ("card.json", "card.csv", "index.html")
    before = [(scored / "results/score/small" / name).read_bytes() for name in files]
    done = _score(scored, AIMD, scored / "tcp_broken.c")
    assert done.stderr.count("(kept)") == 6
    assert done.stdout.splitlines() == card_table(_card(scored))
    assert [(scored / "results/score/small" / name).read_bytes() for name in files] == before


def test_a_card_is_handed_on_with_its_runs(scored: Path, tmp_path: Path) -> None:
    """One file has the card, its tables and its runs; runs that differ from it are refused."""
    results, to = scored / "results", tmp_path / "card.html"
    words = ("share", results / "score/small", "--results", results, "--to", to)
    assert twoway(*words).returncode == 0
    page = to.read_text("utf-8")
    assert "/report.html" in page
    assert 'download="card.csv" href="data:' in page
    runs = twoway_package.load(to)
    assert isinstance(runs, twoway_package.Sweep)
    assert len(runs.runs) == 6
    assert "aimd" in twoway("share", words[1], "--as", "mail").stdout
    copy = tmp_path / "score/small"
    copy.mkdir(parents=True)
    text = (results / "score/small/card.json").read_text()
    value = str(_card(scored).lines[0].cells["reno"].value)
    (copy / "card.json").write_text(text.replace(f'"value":{value}', '"value":9.9'))
    refused = twoway("share", copy, "--results", results, "--to", tmp_path / "no.html")
    assert (refused.returncode, "runs are newer than the card" in refused.stderr) == (2, True)
    assert not (tmp_path / "no.html").exists()


def test_a_card_against_a_column_and_against_itself(scored: Path) -> None:
    """`--against` prints the cells that differ between the first control and a column or card."""
    broken = scored / "tcp_broken.c"
    column = _score(scored, AIMD, broken, "--against", "bbr").stdout.splitlines()
    rows = [line for line in column if "aimd, bbr" in line]
    assert len(rows) == int(column[-1].split()[0]) > 0
    assert any("goodput.flow" in row for row in rows)
    card = scored / "results/score/small"
    itself = _score(scored, AIMD, broken, "--against", card)
    assert itself.stdout.splitlines()[-1] == "0 of 24 cells differ"
    neither = _score(scored, "--against", "nosuch")
    assert neither.returncode == 2
    assert "--against: nosuch: neither a card, a column nor a kernel" in neither.stderr


def test_a_card_against_a_kernel(scored: Path) -> None:
    """`--against` a kernel first makes the card on it; the guest's own kernel has equal cells."""
    done = _score(scored, AIMD, scored / "tcp_broken.c", "--against", "guest")
    assert done.stdout.splitlines()[-1] == "0 of 24 cells differ"
    first = scored / "results/score/small/against"
    assert Card.read(first / "card.json") == _card(scored)
    assert (first / "index.html").is_file()


def test_a_number_opens_its_run(browser: Any, scored: Path) -> None:
    """The page has a row per metric and point, escapes markup of a suite, and links to runs."""
    opened(browser, scored / "results/score/small/index.html")
    assert console(browser) == []
    assert len(browser.find_elements(By.CSS_SELECTOR, "tbody tr")) == 6
    assert "Is it <b>fast</b>?" in browser.find_element(By.TAG_NAME, "dl").text
    link = browser.find_element(By.CSS_SELECTOR, "tbody td.number a").get_attribute("href")
    assert "small-alone%40control%3Daimd%2Cqueue%3D5/2" in link
    doubt = browser.find_element(By.CSS_SELECTOR, "td.doubt")
    assert "tcp_broken" in doubt.get_attribute("title")


def test_a_button_shows_the_rows_of_a_metric(browser: Any, scored: Path) -> None:
    """A button counts and filters rows, the address keeps the filter, a second click undoes it."""
    opened(browser, scored / "results/score/small/index.html")
    button = browser.find_element(By.CSS_SELECTOR, "[data-words=goodput]")
    count = browser.find_element(By.ID, "count")
    assert button.text == "goodput 2"
    button.click()
    assert count.text == "2 of 6"
    assert browser.current_url.endswith("#goodput")
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert count.text == "6 of 6"


def test_a_metric_that_is_none_is_refused_before_any_run(tmp_path: Path, scored: Path) -> None:
    """A row's metric that its experiment lacks is named, and nothing runs."""
    suite = yaml.safe_load((scored / "small.yml").read_text())
    suite["rows"]["alone"]["shows"][0]["metric"] = "goodput.nosuch"
    (tmp_path / "small.yml").write_text(json.dumps(suite))
    done = _score(tmp_path)
    assert done.returncode == 2
    assert "rows.alone.shows: goodput.nosuch: no such metric" in done.stderr
    assert not (tmp_path / "results").exists()


def test_the_kept_card_is_measured_again(tmp_path: Path) -> None:
    """A point of the suite `quick` has the value in the card of docs/results/score."""
    kept = Card.read(ROOT / "docs/results/score/quick.json")
    point = "control=reno,line=20mbit-100ms,buffer=1bdp"
    measured = measure(f"quick/alone@{point}", tmp_path)["metrics"]
    lines = [each for each in kept.lines if each.at == "line 20mbit-100ms, buffer 1bdp"]
    assert len([each for each in lines if each.row == "quick-alone"]) == 2
    for line in lines:
        if line.row == "quick-alone":
            assert measured[line.metric]["value"] == line.cells["reno"].value


def test_what_does_not_compile_stops_the_suite(tmp_path: Path, scored: Path) -> None:
    """Compiler errors come before any run, with exit code 2; the old card stays."""
    before = (scored / "results/score/small/card.json").read_bytes()
    (tmp_path / "tcp_bad.c").write_text(AIMD.read_text() + "}\n")
    done = _score(scored, tmp_path / "tcp_bad.c")
    assert done.returncode == 2
    assert "own_modules: tcp_bad does not build for" in done.stderr
    assert "kept" not in done.stderr
    assert (scored / "results/score/small/card.json").read_bytes() == before


_BETA = """--- a/net/ipv4/tcp_cubic.c
+++ b/net/ipv4/tcp_cubic.c
@@ -50,1 +50,1 @@
-static int beta __read_mostly = 717;\t/* = 717/1024 (BICTCP_BETA_SCALE) */
+static int beta __read_mostly = 512;\t/* = 512/1024 (BICTCP_BETA_SCALE) */
"""


@pytest.mark.long
def test_a_patch_of_cubic_changes_its_cells(tmp_path: Path) -> None:
    """With a patch of CUBIC the mail has cells of CUBIC, and none of Reno."""
    suite = {"schema": 2, "title": "Small", "columns": ["reno", "cubic"]}
    rows = {"base": {**EXPERIMENT, "duration_s": 10}, "rows": {"alone": ROW}}
    (tmp_path / "small.yml").write_text(yaml.safe_dump({**suite, **rows}))
    (tmp_path / "beta.diff").write_text(_BETA)
    words = ("--suite", tmp_path / "small.yml", "--results", tmp_path, "--seeds", "2")
    done = twoway("patch", tmp_path / "beta.diff", *words)
    assert done.returncode == 0, done.stderr
    assert "cubic: " in done.stdout
    assert "reno: " not in done.stdout
    assert (tmp_path / "patch/small/mail.txt").read_text() == done.stdout

"""Tables of a link: rate, delay, losses and queue by time, in one file."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
import yaml
from support.running import SMALL, problems_of, write_experiment

from twoway.description.reading import load_profile

HEADER = "direction,time_ms,rate_kbit,delay_us,loss_share,queue_packets\n"
TABLE = (
    "# made\n"
    f"{HEADER}"
    "down,0,20000,25000.001,0,100\n"
    "up,0,5000,25000,0,50\n"
    "down,1000.000001,8500,25000.001,0.01,100\n"
    "down,2000,8500,30000,0.01,60\n"
)
# Seconds to Mbit/s, ms and %.
RATE = [(0, 20), (1.000000001, 8.5)]
DELAY = [(0, 25.000001), (2, 30)]
LOSS = [(0, 0), (1.000000001, 1)]
# 1 % of 2^32 - 1 in the second row.
THEATERQ = "1000000,25000000,20000000,0,100\n500000,30000000,8500000,42949673,300\n"


def directions(folder: Path, **fields: dict[str, Any]) -> Any:
    """Read a profile with these directions."""
    profile = {"schema": 1, "title": "t", "directions": fields}
    (folder / "link.yml").write_text(yaml.safe_dump(profile))
    return load_profile(folder / "link.yml").directions


@pytest.mark.parametrize("kind", ["csv", "spreadsheet", "parquet"])
def test_a_table_is_exact_to_the_ns(tmp_path: Path, kind: str) -> None:
    """Rows become schedules of their direction, each value in its unit, without repeated values."""
    (tmp_path / "t.csv").write_text(TABLE)
    if kind == "spreadsheet":  # with a byte order mark, quotes, spaces and carriage returns
        lines = TABLE.replace(
            HEADER, '"' + HEADER.strip().replace(",", '", "') + '"\n'
        ).splitlines()
        (tmp_path / "t.spreadsheet").write_text("\r\n ".join(["\ufeff# made", *lines[1:]]))
    if kind == "parquet":
        rows = [line.split(",") for line in TABLE.splitlines()[1:]]
        columns = {name: cells for name, *cells in zip(*rows, strict=True)}
        pyarrow.parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    table = {"table": f"t.{kind}"}
    found = directions(tmp_path, down=table, up=table)
    down, up = found["down"], found["up"]
    assert (down.rate.schedule, down.delay.schedule, down.loss.schedule) == (RATE, DELAY, LOSS)
    assert [at for at, _ in down.rate.table.steps] == [0, 1_000_000_001]
    assert [value for _, value in down.delay.table.steps] == [25_000_001, 30_000_000]
    assert (down.queue_packets, down.queue_limit.schedule) == (100, [(0, 100), (2, 60)])
    assert (up.queue_packets, up.queue_limit) == (50, None)
    assert (up.rate.schedule, up.delay.schedule, up.loss) == ([(0, 5)], [(0, 25)], None)


def test_a_trace_of_theaterq(tmp_path: Path) -> None:
    """TheaterQ's rows last for their time; the extended format may have zeros besides."""
    simple = THEATERQ.splitlines()
    cells = [row.split(",") for row in simple]
    extended = [",".join([*row[:2], "0", *row[2:], "0", "0"]) for row in cells]
    for lines in (simple, ["KEEP,LATENCY", *simple], extended, [f"{row},7" for row in extended]):
        (tmp_path / "t.csv").write_text("\n".join(lines))
        link = directions(tmp_path, down={"table": "t.csv"})["down"]
        assert link.rate.schedule == [(0, 20), (1, 8.5)]
        assert link.delay.schedule == [(0, 25), (1, 30)]
        assert link.loss.schedule == [(0, 0), (1, 1)]
        assert (link.queue_packets, link.queue_limit.schedule) == (300, [(0, 100), (1, 300)])


def test_a_pair_of_mahimahi(tmp_path: Path) -> None:
    """A table with one column of times is a trace of mahimahi."""
    own = {"delay_ms": 8, "queue_packets": 9}
    for name in ("up", "down"):
        (tmp_path / f"cell.{name}").write_text("1\n1\n4\n")
    found = directions(tmp_path, **{n: {"table": f"cell.{n}", **own} for n in ("up", "down")})
    assert [link.rate.opportunities for link in found.values()] == [[(1, 2), (4, 1)]] * 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (TABLE.replace("8500,3", "fast,3"), "line 6: rate_kbit: must be a number of 0 to 1e+0"),
        (TABLE.replace(",100\n", ",0\n"), "line 3: queue_packets: must be a number of 1 to 1e"),
        (TABLE.replace("8500,3", "1e400,3"), "line 6: rate_kbit: must be a number of 0 to 1e+0"),
        (TABLE.replace("8500,3", "nan,3"), "line 6: rate_kbit: must be a number of 0 to 1e+0"),
        (TABLE.replace("8500,3", "0,3"), "line 6: rate: the first and the last must be above"),
        (TABLE.replace("rate_kbit", "down_mbps"), "column 'down_mbps': unknown; there are time_s"),
        (TABLE.replace("rate_kbit", "rate"), "column 'rate': unknown; write its unit: rate_bi"),
        (TABLE.replace("rate_kbit", "rte_kbit"), "column 'rte_kbit': unknown; did you mean"),
        (TABLE.replace("time_ms", "delay_ms"), "must have one column for time: direction, "),
        (TABLE.replace("rate_kbit", "delay_ms"), "must have one column for delay: direction"),
        (TABLE.replace("000.001", "000.0001"), "line 3: delay_us: is finer than ns, bit/s, a"),
        (TABLE.replace("2000,85", "500,85"), "line 6: time must be later than that of the row"),
        (TABLE.replace("down,0,", "down,7,"), "line 3: time: the first is 0, got 7000000 ns"),
        (TABLE.replace(",100\n", "\n"), "line 3: has 5 columns of 6"),
        (TABLE.replace("down", "left"), "has no row for this direction; its rows are of left, up"),
        ("1,2,3\n", "line 1: TheaterQ has 5, 8 or 9 columns, got 3"),
        (THEATERQ.replace("20000000", "0"), "line 1: rate_bit: must be above 0, got 0"),
        ("1,2,3,4,0,5,0,0\n", "line 1: jitter: no schedule has it, got 3"),
        ("", "has no row for this direction"),
    ],
)
def test_a_wrong_table(tmp_path: Path, text: str, problem: str) -> None:
    """A row, column or unit that is wrong is named with the file and the value."""
    found = _problems(tmp_path, text)
    assert f"profile.directions.down.table: t.csv: {problem}" in found[0]
    assert found[1].endswith("profile.directions.other.table: no.csv: No such file or directory")


@pytest.mark.parametrize("field", ["rate_mbit", "queue_packets"])
def test_a_column_that_is_given_twice(tmp_path: Path, field: str) -> None:
    """A field beside a table that has a column for it is refused."""
    found = _problems(tmp_path, TABLE, **{field: 8})
    said = f"t.csv: has a column for {field}, which is given as well"
    assert f"profile.directions.down.table: {said}" in found[0]


def _problems(folder: Path, text: str, **fields: Any) -> list[str]:
    """List the problems of a table, and of one that is not there, in an experiment's profile."""
    (folder / "t.csv").write_text(text)
    link = {"rate_mbit": 8, "delay_ms": 8, "queue_packets": 9}
    given = {"table": "t.csv", **fields}
    profile = {"directions": {"down": given, "up": link, "other": {"table": "no.csv"}}}
    return problems_of(write_experiment(folder, {**SMALL, "profile": profile}))

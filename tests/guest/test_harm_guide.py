"""The guide to harm works as written."""

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
from support.guides import copy_listings
from support.running import ROOT, carry_out_points
from support.warm_command import twoway

GUIDE = ROOT / "docs/guides/harm.md"


@pytest.mark.usefixtures("guest")
def test_the_guide_works_as_written(tmp_path: Path) -> None:
    """The guide's sweep runs, its page shows harm first, and its script prints its table."""
    copy_listings(GUIDE.name, tmp_path, "my-line.yml", "beside.yml", "harm.py")
    words = ("--results", "results", "--metric", "harm_goodput")
    carry_out_points(tmp_path / "beside.yml", tmp_path / "results")
    done = twoway("run", "beside.yml", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "results/beside/index.html").read_text("utf-8")
    assert 0 < page.index("harm goodput against beside") < page.index("utilisation against beside")
    said = subprocess.check_output([sys.executable, "harm.py"], cwd=tmp_path, text=True)
    assert f"$ python harm.py\n{said}```" in GUIDE.read_text("utf-8")
    table = pyarrow.parquet.read_table(tmp_path / "results/beside/points.parquet").to_pydict()
    by_name = dict(zip(table["beside"], table["goodput.mine"], strict=True))
    harm = dict(zip(table["beside"], table["harm_goodput.mine"], strict=True))
    alone = by_name["alone"]
    assert harm == pytest.approx({name: (alone - y) / alone for name, y in by_name.items()})

"""Write docs/atlas.md: what Linux's TCP does in situations of docs/atlas.yml, kernel by kernel.

`atlas_page.py run [NAME...]` plays them on each kernel, and keeps docs/results/atlas.csv, a line
for each; with names it prints these, and keeps nothing. `make atlas` calls it.
"""

import csv
import json
import sys
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from twoway.backends import uml
from twoway.backends.sandbox import GUEST_FOLDER
from twoway.contract.plan import PLAN, Plan
from twoway.guest.cache import Guest, built_guest
from twoway.guest.source import kernel_named

PAGE = Path(__file__).with_name("atlas.md")
KEPT = PAGE.parent / "results/atlas.csv"
SITUATIONS: dict[str, list[str]] = yaml.safe_load(PAGE.with_suffix(".yml").read_text("utf-8"))
KERNELS = ("6.1", "wide", "newest-tun")
_MEMORY_MIB = 6144  # so that it does not bound the defaults of buffers
_TEXT = """\
# What Linux's TCP does, since when

{count} situations of one host, each on three kernels with their own defaults. `=` is the cell on
its left; {differ} rows differ. The kernels are configured alike, with a tick of 1 ms. The other
end is a program that writes each segment: segments of 1000 bytes, SACK, no time stamps, a round
trip of 10 ms. Segments are numbered from 0; times in seconds begin with the question's event.
Flags are F, S, R, P, A, U, E (ECE), C (CWR) and N (AE, AccECN's third bit). `docs/atlas.yml` has
the steps of each situation; one of your own is a line there.

{table}

The times are exact: a timer fires at the tick to which the kernel rounds it, up to an eighth of
its length late. Each situation begins at the same phase of these ticks.

`make atlas` builds the kernels, plays all situations, and writes `docs/results/atlas.csv` and this
page. These commands print the rows that differ:

{commands}
"""


def cells(guest: Guest, names: list[str]) -> list[str]:
    """Play situations on a kernel, each in a namespace and phase of its own."""
    place = "/mnt/atlas_peer.py"
    runner = ("/mnt/venv/bin/python", "-I", "-S", place)
    with TemporaryDirectory(prefix="twoway-atlas-") as scratch:
        folder = Path(scratch)
        Plan(memory_mib=_MEMORY_MIB).write(folder / PLAN)
        (folder / GUEST_FOLDER).mkdir()
        steps = [SITUATIONS[name][1] for name in names]
        (folder / GUEST_FOLDER / "steps.json").write_text(json.dumps(steps))
        readable = {place: PAGE.with_name("atlas_peer.py")}
        uml.run(guest, folder, lambda _: None, runner=runner, readable=readable)
        found: list[str] = json.loads((folder / "atlas.json").read_text("utf-8"))
    return found


def run(names: list[str]) -> None:
    """Play situations on all kernels; keep the cells of all of them, or print those of some."""
    asked = names or [*SITUATIONS]
    guests = [built_guest(kernel_named(kernel)) for kernel in KERNELS]
    columns = [[guest.release, *cells(guest, asked)] for guest in guests]
    with sys.stdout if names else KEPT.open("w", encoding="utf-8") as file:
        rows = zip(["situation", *asked], *columns, strict=True)
        csv.writer(file, lineterminator="\n").writerows(rows)


def kept() -> list[list[str]]:
    """Read the kept rows: the head, and the cells of each situation."""
    with KEPT.open(encoding="utf-8") as file:
        return list(csv.reader(file))


def page() -> str:
    """Return the page's text."""
    (_, *releases), *rows = kept()
    table = [f"| situation | {' | '.join(releases)} |", "|---" * (len(releases) + 1) + "|"]
    for name, *found in rows:
        same = ["=" if cell == before else cell for before, cell in pairwise(["", *found])]
        table.append(f"| `{name}`: {SITUATIONS[name][0]} | {' | '.join(same)} |")
    differ = [name for name, *found in rows if len(set(found)) > 1]
    commands = "\n".join(f"    make atlas OF={name}" for name in differ)
    counts = {"count": len(rows), "differ": len(differ)}
    return _TEXT.format(**counts, commands=commands, table="\n".join(table))


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(sys.argv[2:])
    if not sys.argv[2:]:
        PAGE.write_text(page(), encoding="utf-8")

"""`make bench OF=instructions`: counts that other work of the machine does not change.

valgrind counts the instructions of each command, start-up included, beside the counts of the last
commit in the file KEPT. --keep adds the counts of this commit. `twoway report` reads a run of
EXPERIMENT, the other commands read a generated capture of PACKETS packets.

    instructions.py [--keep] [--today]
"""

import argparse
import csv
import math
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from processes import ProgramFailedError, run

HERE = Path(__file__).parent
KEPT = HERE / "instructions.tsv"
GENERATOR = HERE.parents[1] / "capture-analysis/tests/support/traffic_generator.py"
PACKETS = 200_000
EXPERIMENT = "kalampoukas-5.2"
LOSS = 1.1  # far above what memory addresses change in numpy's paths, 1 %
# The bytecode of modules is written before the measurement, as it is for users.
_ENVIRONMENT = ("env", "-u", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED=0")

Counts = dict[str, int]


def main() -> int:
    """Count, print the comparison, and keep the counts if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help=f"add the counts to {KEPT.name}")
    parser.add_argument("--today", action="store_true", help="one command, chosen by the date")
    asked = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("instructions: not counted, since valgrind is missing (make test-packages)")
    try:
        with tempfile.TemporaryDirectory(prefix="instructions-") as folder:
            found = count(Path(folder), asked.today)
    except ProgramFailedError as error:
        sys.exit(f"instructions: not counted: {error}")
    print(compare(found, *read_last(KEPT)))
    if asked.keep:
        keep(KEPT, found, _this_commit())
    return 0


def count(folder: Path, one: bool) -> Counts:
    """Count the instructions of each command, or of today's one, by its name.

    Raises: ProgramFailedError if valgrind or the command fails.
    """
    near, far, totals = folder / "near.pcap", folder / "far.pcap", folder / "totals"
    twoway = [sys.executable, "-m", "twoway.cli"]
    captures = [sys.executable, "-m", "capture_analysis.cli"]
    run([sys.executable, GENERATOR, "--packets", str(PACKETS), near, far])
    run([*twoway, "run", EXPERIMENT, "--results", folder / "results"])
    (measured,) = folder.glob("results/*/*/manifest.json")
    commands: dict[str, list[str | Path]] = {
        "flows": [*captures, "flows", near],
        "metrics": [*captures, "metrics", near],
        "match": [*captures, "match", near, far],
        "twoway report": [*twoway, "report", measured.parent],
    }
    if one:
        todays = [*commands][datetime.now(tz=UTC).date().toordinal() % len(commands)]
        commands = {todays: commands[todays]}
    # cachegrind gives callgrind's counts, in 0.6 of its time.
    grind = ["valgrind", "-q", "--tool=cachegrind", "--cache-sim=no"]
    grind += [f"--cachegrind-out-file={totals}"]
    found = {}
    for name, words in commands.items():
        run([*_ENVIRONMENT, *words], keep_output=False)  # writes bytecode
        run([*_ENVIRONMENT, *grind, *words], keep_output=False)
        lines = totals.read_text().splitlines()
        found[name] = int(next(x for x in lines if x.startswith("summary:")).split()[1])
    return found


def compare(found: Counts, commit: str, before: Counts) -> str:
    """Write a table of millions of instructions, and name what lost more than a tenth.

    Args:
        found: the counts now, by command.
        commit: the last commit that was kept.
        before: its counts; a command without a count is printed as nan.
    """
    lines = [f"{'instructions, millions':<24} {commit or 'before':>12} {'now':>8} {'ratio':>7}"]
    for name, now in found.items():
        then = before.get(name, math.nan)
        lines.append(f"{name:<24} {then / 1e6:12.0f} {now / 1e6:8.0f} {now / then:7.3f}")
    if lost := [name for name, now in found.items() if now > LOSS * before.get(name, math.nan)]:
        lines.append(f"lost more than a tenth: {', '.join(lost)}")
    return "\n".join(lines)


def read_last(table: Path) -> tuple[str, Counts]:
    """Read the last commit of a table and its counts."""
    with table.open(newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    commit = rows[-1]["commit"] if rows else ""
    return commit, {x["command"]: int(x["instructions"]) for x in rows if x["commit"] == commit}


def keep(table: Path, found: Counts, commit: str) -> None:
    """Append the counts of a commit to a table."""
    with table.open("a") as lines:
        lines.writelines(f"{commit}\t{name}\t{number}\n" for name, number in found.items())


def _this_commit() -> str:
    """Name the commit, with a + if files differ from it."""
    words = ["git", "-C", str(HERE), "describe", "--always", "--dirty=+"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())

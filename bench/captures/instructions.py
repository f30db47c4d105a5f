"""Instructions of commands, a measure that other work of the machine does not change.

callgrind counts the instructions of the whole process, start-up included, on a capture of PACKETS
packets. The figures are kept in the cache with the commit, so that the next run shows which became
slower.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from processes import run

PACKETS = 200_000
COMMANDS = ("flows", "metrics", "match")
# Variation of counts from run to run: numpy's paths depend on memory addresses.
NOISE = 0.01
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "twoway"
KEPT = CACHE / "bench-captures.json"
# As for users: with the bytecode of modules already written.
_ENVIRONMENT = ("env", "-u", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED=0")

Counts = dict[str, int]


def count(near: Path, far: Path, folder: Path) -> Counts:
    """Count the instructions of each command, by its name.

    Raises: ProgramFailedError if valgrind or the command fails.
    """
    found = {}
    for name in COMMANDS:
        totals = folder / f"{name}.callgrind"
        second = [far] if name == "match" else []
        words: list[str | Path] = [sys.executable, "-m", "capture_analysis.cli", name, near]
        words += second
        run([*_ENVIRONMENT, *words], keep_output=False)  # writes bytecode
        grind = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={totals}"]
        run([*_ENVIRONMENT, *grind, *words], keep_output=False)
        lines = totals.read_text().splitlines()
        found[name] = int(next(x for x in lines if x.startswith("totals:")).split()[1])
    return found


def compare(found: Counts, last: dict[str, Counts]) -> str:
    """Write a table of instructions, beside those of the last commit that was counted.

    Args:
        found: of each command.
        last: the same by commit, the latest last.
    """
    commit, before = next(reversed(last.items()), ("", {}))
    beside = f"of {commit}" if commit else ""
    lines = [f"{f'instructions, {PACKETS} packets, start-up included':<46} {'M':>8} {beside:>12}"]
    for name, number in found.items():
        ratio = number / before[name] if name in before else None
        more = "" if ratio is None else f"{ratio:11.3f}x"
        slower = "  SLOWER" if ratio is not None and ratio > 1 + NOISE else ""
        lines.append(f"{name:<46} {number / 1e6:8.0f} {more}{slower}")
    return "\n".join(lines)


def keep(found: Counts, last: dict[str, Counts], commit: str) -> None:
    """Append the figures of a commit to those of earlier commits."""
    kept = {name: counts for name, counts in last.items() if name != commit} | {commit: found}
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")


def kept() -> dict[str, Counts]:
    """Read the figures of earlier runs, by commit, the latest last."""
    found: dict[str, Counts] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    return found


def this_commit() -> str:
    """Name the commit, with a + if files differ from it."""
    words = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

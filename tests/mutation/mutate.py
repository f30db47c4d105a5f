"""Change the code that measures and judges, one place at a time; list unnoticed changes.

Each mutant lives in a process of its own, in which the module is compiled with the change; nothing
is written to the tree. The process runs the unit tests that name the module, until one fails.
equivalent.txt lists the mutants that no test can notice, with the reason.
"""

import argparse
import csv
import importlib
import math
import os
import random
import re
import select
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any, Never

from mutants import Mutant, mutants, mutated

ROOT = Path(__file__).resolve().parents[2]
TARGETS = (
    "twoway/measure/allocations.py",
    "twoway/measure/analysis.py",
    "twoway/measure/channel.py",
    "twoway/measure/connection_view.py",
    "twoway/measure/fidelity.py",
    "twoway/measure/medium.py",
    "twoway/measure/queue_view.py",
    "twoway/measure/queues.py",
    "twoway/measure/real_time.py",
    "twoway/measure/throughput.py",
    "twoway/contract/judge.py",
    "twoway/contract/verdicts.py",
    "twoway/report/judging.py",
    "twoway/theory/*.py",
    "twoway/measure/metrics/*.py",
    "twoway/measure/checks.py",
    "twoway/measure/links/*.py",
)
_FIDELITY = ["tests/unit/measure/test_fidelity.py", "tests/unit/measure/test_real_time.py"]
# The tests of a module that many other tests name, too.
ABOUT = {
    "twoway/contract/judge": ["tests/unit/report/test_judging.py"],
    "twoway/contract/verdicts": ["tests/unit/report/test_judging.py"],
    "twoway/measure/fidelity.py": _FIDELITY,
    "twoway/measure/checks.py": _FIDELITY,
    "twoway/measure/real_time.py": [
        "tests/unit/measure/test_real_time.py",
        "tests/unit/measure/test_clocks.py",
    ],
}
# Tests of modules that are found by their folder and never named.
ALSO = {
    "twoway/measure/metrics/": ["tests/unit/measure/test_metrics.py"],
    "twoway/measure/links/": ["tests/unit/measure/test_metrics.py", *_FIDELITY],
}
# Modules to load only once, because they take longer than most mutants' tests.
HEAVY = ("numpy", "pydantic", "pytest", "hypothesis", "scapy.layers.inet", "scapy.utils", "rich")
PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=1")
KINDS = "not slow and not guest and not lab and not long and not smp and not sanitized"
# A mutant may loop forever.
PATIENCE, LEAST_S = 4, 30


class _Loader(SourceFileLoader):
    """Loads a module with one change."""

    index = 0

    def get_code(self, fullname: str) -> Any:
        """Compile the mutant; ignore cached byte code."""
        path = self.get_filename(fullname)
        return compile(mutated(Path(path).read_text(encoding="utf-8"), self.index), path, "exec")


class _Finder:
    """Finds one module before Python does."""

    def __init__(self, mutant: Mutant) -> None:
        self.name = dotted(mutant.path)
        self.loader = _Loader(self.name, str(mutant.path))
        self.loader.index = mutant.index

    def find_spec(self, name: str, *_: Any) -> Any:
        """Answer for that module alone."""
        if name != self.name:
            return None
        return spec_from_file_location(name, self.loader.path, loader=self.loader)


def dotted(path: Path) -> str:
    """Return a module's name."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def tests_of(path: Path) -> list[str]:
    """List the unit tests that name a module, its own first."""
    name = str(path.relative_to(ROOT))
    for place, about in ABOUT.items():
        if name.startswith(place):
            return about
    package, _, stem = dotted(path).rpartition(".")
    named = re.compile(rf"{package}\.{stem}\b|from {package} import [^)]*\b{stem}\b")
    found = [
        str(test.relative_to(ROOT))
        for test in sorted((ROOT / "tests/unit").rglob("test_*.py"))
        if named.search(test.read_text(encoding="utf-8"))
    ]
    found += [test for place, more in ALSO.items() if name.startswith(place) for test in more]
    own = f"test_{stem}.py"
    return sorted(dict.fromkeys(found), key=lambda test: not test.endswith(own))


def pass_in_s(tests: Iterable[str], mutant: Mutant | None, limit_s: float) -> float:
    """Run tests in their own process, against a mutant if one is given.

    Returns: the time that they took, s; NaN if they fail, or do not end in time.
    """
    with tempfile.TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True) as scratch:
        began, pid = time.monotonic(), os.fork()
        if not pid:
            _test(tests, mutant, Path(scratch))
        over = not select.select([process := os.pidfd_open(pid)], [], [], limit_s)[0]
        os.close(process)
        if over:
            os.killpg(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        return math.nan if status else time.monotonic() - began


def _test(tests: Iterable[str], mutant: Mutant | None, scratch: Path) -> Never:
    code = 1
    try:
        os.setsid()
        output = os.open(scratch / "output", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if mutant:
            sys.meta_path.insert(0, _Finder(mutant))
        import pytest

        code = int(pytest.main([*PYTEST, "-m", KINDS, f"--basetemp={scratch / 'tmp'}", *tests]))
    finally:
        os._exit(code)


def equivalents() -> dict[tuple[str, str, str], str]:
    """Read the mutants that no test can notice: module, line and change, and the reason."""
    with (Path(__file__).parent / "equivalent.txt").open(encoding="utf-8") as file:
        rows = csv.reader((line for line in file if line[0] not in "#\n"), delimiter="|")
        return {(row[0].strip(), row[1].strip(), row[2].strip()): row[3].strip() for row in rows}


def survivors(chosen: list[Mutant], jobs: int) -> list[Mutant]:
    """Run the tests of each mutant, and list those that pass all tests."""
    tests = {path: tests_of(path) for path in {mutant.path for mutant in chosen}}
    every = sorted({each for found in tests.values() for each in found})
    alive = []
    with ThreadPoolExecutor(jobs) as pool:
        took = dict(
            zip(every, pool.map(lambda test: pass_in_s([test], None, 600), every), strict=True)
        )
        for test in every:
            if math.isnan(took[test]):
                print(f"left out, fails against the code as it is: {test}")

        def is_alive(mutant: Mutant) -> bool:
            mine = [test for test in tests[mutant.path] if not math.isnan(took[test])]
            mine.sort(key=lambda test: took[test])
            limit_s = LEAST_S + PATIENCE * sum(took[test] for test in mine)
            return not mine or not math.isnan(pass_in_s(mine, mutant, limit_s))

        for done, (mutant, lives) in enumerate(
            zip(chosen, pool.map(is_alive, chosen), strict=True), 1
        ):
            if lives:
                alive.append(mutant)
                print(
                    f"{mutant.path.name}:{mutant.line}: {mutant.change}: {mutant.source}",
                    flush=True,
                )
            if not done % 10 or done == len(chosen):
                print(f"{done} of {len(chosen)}, {len(alive)} alive", file=sys.stderr, flush=True)
    return sorted(alive, key=lambda mutant: (mutant.path, mutant.index))


def report(chosen: list[Mutant], alive: list[Mutant]) -> None:
    """Print the survivors as a table, and their number for each module."""
    known = equivalents()
    rows = []
    for mutant in alive:
        name = str(mutant.path.relative_to(ROOT))
        reason = known.get((name, mutant.source, mutant.change), "")
        rows.append((f"{name}:{mutant.line}", mutant.change, mutant.source, reason))
    print("\n| where | change | line | why no test can notice |\n|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    print("\n| module | mutants | killed | equivalent | survived |\n|---|---|---|---|---|")
    for path in sorted({mutant.path for mutant in chosen}):
        name = str(path.relative_to(ROOT))
        total = sum(mutant.path == path for mutant in chosen)
        mine = [row for row in rows if row[0].startswith(f"{name}:")]
        equal = sum(bool(row[3]) for row in mine)
        print(f"| {name} | {total} | {total - len(mine)} | {equal} | {len(mine) - equal} |")


def main() -> None:
    """Read the command line, and mutate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", default=TARGETS, help="files or patterns")
    parser.add_argument("--number", type=int, default=100, help="mutants, chosen at random; 0: all")
    parser.add_argument("--seed", type=int, default=1, help="of that choice")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at the same time")
    args = parser.parse_args()
    os.chdir(ROOT)
    for name in HEAVY:
        importlib.import_module(name)
    paths = sorted({path for pattern in args.modules for path in ROOT.glob(pattern)})
    chosen = [mutant for path in paths for mutant in mutants(path)]
    if args.number and args.number < len(chosen):
        chosen = random.Random(args.seed).sample(chosen, args.number)
    report(chosen, survivors(chosen, args.jobs))


if __name__ == "__main__":
    main()

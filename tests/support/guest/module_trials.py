"""Arguments and results of the trials of kernel-modules/tests."""

import json
import re
from pathlib import Path

from channels import refusals, rising

from twoway.description.congestion import CONTROLS
from twoway.paths import KERNEL_MODULES

# Refusals of tables longer than a message, which the fuzzer does not make.
LONG_TABLES = {
    "a table has at most 1048576 steps",
    "too many steps for the little that the table carries each time",
}
# Two values of each control's parameter, so that one module registers two controls.
VALUES = (10, 20)


def congestion_modules(programs: Path) -> list[str]:
    """Return each module with its parameters and congestion controls, as endurance.py has it."""
    parameters: dict[str, str] = {}
    names: dict[str, list[str]] = {}
    for family, control in CONTROLS.items():
        if control.module is None or not (programs / f"{control.module}.ko").is_file():
            continue
        variants = [f"{family}{value}" for value in VALUES] if control.variants else [family]
        names.setdefault(control.module, []).extend(variants)
        parameters[control.module] = (
            f"{control.variants}={','.join(map(str, VALUES))}" if control.variants else ""
        )
    return [f"{name}/{parameters[name]}/{','.join(names[name])}" for name in names]


def kunit_cases() -> list[str]:
    """Return suite and name of each case in the source, so that a case that does not run fails."""
    source = (KERNEL_MODULES / "tests/twoway_kunit.c").read_text()
    found = []
    for cases, suite in re.findall(
        r"struct kunit_case (\w+)\[\] = \{(?:.*?)\n\};.*?\.name = \"(\w+)\"", source, re.DOTALL
    ):
        block = source[source.index(f"struct kunit_case {cases}[]") :]
        block = block[: block.index("\n};")]
        found += [f"{suite}.{case}" for case in re.findall(r"KUNIT_CASE\w*\((\w+)", block)]
    return found


def kunit_verdicts(folder: Path) -> dict[str, str]:
    """Return each case's verdict by suite and name, "ok" or the kernel's words on its failure.

    Args:
        folder: the folder `kunit` of debugfs, as copied by the trial.
    """
    verdicts = {}
    for path in folder.glob("*/results"):
        said: list[str] = []
        for line in path.read_text().splitlines():
            if match := re.match(r"\s{4,}(not )?ok \d+ (\w+)", line):
                verdicts[f"{path.parent.name}.{match[2]}"] = "\n".join(said) if match[1] else "ok"
                said = []
            else:
                said.append(line)
    return verdicts


def check_fuzzed(folder: Path, qdisc: str, requests: int) -> None:
    """Assert that qdisc_fuzz got an answer to each request, and every sentence of the qdisc's own.

    Args:
        folder: the folder with its table.
        qdisc: its kind.
        requests: the number that it had to send.
    """
    rows = [line.split("\t") for line in (folder / "fuzz.tsv").read_text().splitlines()]
    assert sum(int(row[0]) for row in rows if row[2] == "done") == requests
    assert [row for row in rows if row[2] == "ours"] == []
    said = {row[3] for row in rows if row[2] == "said"}
    assert refusals(qdisc) - said == {text for text in LONG_TABLES if qdisc == "timetable"}


def check_stress(folder: Path) -> int:
    """Assert that stress.py has carried traffic through channels in each place.

    Returns: the number of requests that the kernel granted.
    """
    granted = 0
    rounds: list[dict[str, dict[str, int]]] = json.loads((folder / "stress.json").read_text())
    for places in rounds:
        for place, counted in places.items():
            granted += counted["asked"] - counted["refused"]
            assert [name for name in rising(place) if not counted[name]] == [], place
    return granted


def check_cases(folder: Path) -> None:
    """Assert that each case that suite.py has tried holds, and that there are many."""
    results: dict[str, dict[str, str]] = json.loads((folder / "results.json").read_text())
    assert len(results) > 100
    assert {name: found for name, found in results.items() if "failed" in found} == {}

"""Runs in a stranger's folder, which has a module of each name beside the experiments."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from planted_modules import plant_modules, planted_that_ran
from support.running import SMALL, write_experiment
from support.today import DAY, DAYS

pytestmark = pytest.mark.usefixtures("guest")

SHORT = {**SMALL, "duration_s": 0.3, "warm_up_s": 0.1}
MATRIX = {"window": {"set": ["flows.left.window_packets"], "to": [4, 6]}}
SUITE: dict[str, Any] = {
    "schema": 2,
    "title": "Small",
    "columns": ["reno", "cubic"],
    "rows": {
        "scored": {
            "asks": "Is it fast?",
            "source": "us",
            "shows": [{"metric": "goodput.left", "better": "more"}],
        }
    },
}
CONTROLS = {"control": {"set": ["flows.left.congestion"]}}
PROGRAM = """
from pathlib import Path
import sys
import twoway
twoway.run(sys.argv[1] + "/one.yml", results=Path("results"))
print(len(twoway.sweep(sys.argv[1] + "/matrix.yml", results=Path("results")).runs))
"""
ALL = """
import sys
from twoway.cli import main
for words in sys.stdin:
    sys.argv = ["twoway", *words.split()]
    try:
        status = main()
    except SystemExit as end:  # of --help
        status = end.code
    if status:
        sys.exit(f"{words}: {status}")
"""
COMMANDS = (
    "list",
    "metrics",
    "new mine.yml",
    "vet one.yml",
    "plan matrix.yml@window=4",
    "predict one.yml",
    "schema experiment",
    "lab bundle --help",
    "run one.yml --seeds 1",
    "sweep one.yml matrix.yml",
    "papers one.yml matrix.yml",
    "score --suite suite.yml",
    "runs",
    "report one",
    "figures one",
    "export one --format csv",
    "share one",
    "compare one one",
    "doctor",
    "clean",
)


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a stranger's folder with experiments, a suite and modules of all names."""
    folder = tmp_path_factory.mktemp("stranger")
    plant_modules(folder)
    write_experiment(folder, SHORT, "one")
    write_experiment(folder, {**SHORT, "matrix": MATRIX}, "matrix")
    left, right = SHORT["flows"]
    flow = {key: left[key] for key in ("name", "from", "to")} | {"congestion": "reno"}
    base = {key: value for key, value in SHORT.items() if key != "schema"}
    suite = SUITE | {"base": base | {"flows": [flow, right], "matrix": CONTROLS}}
    (folder / "suite.yml").write_text(yaml.safe_dump(suite))
    return folder


# The date chooses a seventh of the commands for `make test`; `make check` has all.
@pytest.mark.parametrize(
    "day", [pytest.param(day, marks=[pytest.mark.long] * (day != DAY)) for day in range(DAYS)]
)
def test_no_command_runs_a_module_beside_the_experiment(
    stranger: Path, tmp_path: Path, day: int
) -> None:
    """No command, and no process that it starts, runs a Python file of the current folder."""
    program = str(Path(sys.executable).with_name("twoway"))
    (tmp_path / "all.py").write_text(ALL)
    argvs = [program, "vet", "one.yml"], [sys.executable, str(tmp_path / "all.py")]
    lines = "\n".join(("run one.yml", *COMMANDS[day::DAYS]))
    for argv in argvs:
        done = subprocess.run(
            argv, cwd=stranger, input=lines, capture_output=True, text=True, check=False
        )
        assert planted_that_ran(stranger) == []
        assert done.returncode == 0, done.stderr


def test_python_runs_no_module_beside_the_experiment(stranger: Path, tmp_path: Path) -> None:
    """`twoway.run` and `twoway.sweep` run no Python file of an experiment's folder."""
    (tmp_path / "program.py").write_text(PROGRAM)
    argv = [sys.executable, str(tmp_path / "program.py"), str(stranger)]
    done = subprocess.run(argv, cwd=stranger, capture_output=True, text=True, check=False)
    assert planted_that_ran(stranger) == []
    assert done.stdout == "2\n", done.stderr

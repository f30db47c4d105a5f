"""Options and output functions that several subcommands share."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from twoway.errors import UsageError
from twoway.messages import cut_line
from twoway.paths import EXPERIMENTS, experiment_files, results

DEFAULT_EXPERIMENT = "kalampoukas-5.2"


class Option(NamedTuple):
    """An argument of a command.

    Attributes:
        names: as on the command line.
        settings: makes argparse's settings, and argcomplete's `completer`.
    """

    names: tuple[str, ...]
    settings: Callable[[], dict[str, Any]]


def option(*names: str, **settings: Any) -> Option:
    """Describe an argument that needs no other module."""
    return Option(names, lambda: settings)


def add_options(parser: argparse.ArgumentParser, *options: Option) -> None:
    """Add arguments to a command's parser."""
    for names, make in options:
        settings = {**make()}
        completer = settings.pop("completer", None)
        added: Any = parser.add_argument(*names, **settings)
        added.completer = completer


def seconds(text: str) -> float:
    """Read a wall time of the command line."""
    try:
        found = float(text)
    except ValueError:
        found = 0
    if not 0 < found <= 86_400:
        raise argparse.ArgumentTypeError(f'must be above 0 and at most 86400 s, got "{text}"')
    return found


def at_least_one(text: str) -> int:
    """Read a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'must be a whole number from 1, got "{text}"')
    return int(text)


def _results() -> dict[str, Any]:
    return {
        "type": Path,
        "default": results(),
        "metavar": "FOLDER",
        "help": "where runs are kept (default: results/ in the current folder; within the "
        "checkout, its own)",
    }


def _backends() -> dict[str, Any]:
    from twoway.backends.registry import kinds

    return {
        "choices": tuple(kinds()),
        "default": "uml",
        "help": "where it runs: "
        + "; ".join(f"{kind.name}, {kind.help}" for kind in kinds().values() if kind.help),
    }


def _formats() -> dict[str, Any]:
    from twoway.report.export import FORMATS

    return {
        "choices": tuple(FORMATS),
        "default": "csv",
        "help": "; ".join(f"{name}: {each.help}" for name, each in FORMATS.items()),
    }


def _experiments(prefix: str, **_options: Any) -> list[str]:
    """List completions for an experiment: ids and suites, rows of a suite, or files."""
    from twoway.description.suite import row_names, suite_names

    suite, slash, _ = prefix.rpartition("/")
    if slash or prefix.startswith("."):
        files = [str(path) for path in Path().glob(f"{prefix}*")]
        return files + [row for row in row_names(suite) if row.startswith(prefix)]
    return [*experiment_files(), *(f"{each}/" for each in suite_names())]


def experiments_by_default(usual: str) -> Option:
    """Describe the argument for any number of experiments, with the word for its default."""
    help_text = f"ids, files, or rows of suites, such as quick/alone (default: {usual})"
    return option("experiments", nargs="*", help=help_text, completer=_experiments)


EXPERIMENTS_OR_ALL = experiments_by_default("all")
EXPERIMENT = option(
    "experiment",
    nargs="?",
    default=DEFAULT_EXPERIMENT,
    help=f"an id, a file, or a row of a suite (default: {DEFAULT_EXPERIMENT})",
    completer=_experiments,
)
RUN = option(
    "run",
    nargs="?",
    help="its folder, its experiment's id or file, a point, or the first digits of an identity "
    "(default: the latest)",
)
SUITE = option(
    "--suite", default="quick", help="a name under suites/, or a file (default: %(default)s)"
)
JSON = option("--json", action="store_true", help="machine-readable output on stdout")
QUIET = option(
    "--quiet", "-q", action="store_true", help="print on standard error only what is wrong"
)
RESULTS = Option(("--results",), _results)
OWNER = option(
    "--trust-owner-of-results",
    action="store_true",
    help="as root, write to a folder for results that another user may change, although that user "
    "can become root by it",
)
NEW_RUNS = (RESULTS, OWNER)
FORMAT = Option(("--format",), _formats)
BACKEND = Option(("--backend",), _backends)
KERNEL = option(
    "--kernel",
    metavar="SOURCE",
    help="the kernel of the backend uml: guest, built by `make setup` (default); wide, with MPTCP, "
    "tunnels and netfilter; newest, Debian's newest; newest-tun, the same with TUN; 6.1, Debian "
    "12's; or the folder of a source from 6.1 on; `twoway build --kernel SOURCE` builds each once",
)
WORKERS = option(
    "--workers",
    type=at_least_one,
    default=len(os.sched_getaffinity(0)),
    metavar="N",
    help="number of points of a sweep that run at once (default: one per processor, %(default)s)",
)
LONGEST = option(
    "--longest",
    type=seconds,
    default=60.0,
    metavar="SECONDS",
    help="wall time of one request, its compiler included; then its answer is an error "
    "(default: %(default)g)",
)
SCHEDULER = option(
    "--scheduler",
    metavar="ADDRESS",
    help="have a lab's workers run the points: Dask's scheduler, as tls://lab1:8786",
)
CERTIFICATES = option(
    "--certificates",
    type=Path,
    default=Path("~/.config/twoway/lab"),
    metavar="FOLDER",
    help="for --scheduler tls://...: ca.crt, client.crt, client.key (default: %(default)s)",
)
CREW = (WORKERS, SCHEDULER, CERTIFICATES)
KEEP = option(
    "--keep",
    choices=("metrics", "captures"),
    help="of new runs keep metrics and pages alone, or the captures of all, too (default: those of "
    "a sweep until they take 1 GB)",
)
SEEDS = option(
    "--seeds",
    type=at_least_one,
    metavar="N",
    help="repeat each point with the seeds 1 to N, with new random values "
    "(default: as the file says)",
)
METRIC = option(
    "--metric",
    action="append",
    default=[],
    metavar="NAME[=FORMULA]",
    help="answer for this metric, in a table and first on the sweep's page, such as goodput or "
    "'share=goodput.left / sum(goodput.*)'; may be repeated",
)
WATCH = option(
    "--watch",
    action="store_true",
    help="update a sweep's page while points finish; in a browser it reloads itself",
)

# The formats that `twoway schema` describes: files that people write, and documents of a run's
# folder.
SCHEMAS = {
    "experiment": "Experiment files",
    "profile": "Link profiles",
    "suite": "Suites",
    "plan": "plan.json",
    "manifest": "manifest.json",
    "metrics": "metrics.json",
    "verdicts": "verdicts.json",
    "evaluation": "Requests of `twoway evaluate`",
}
# The schemas that editors read from paths.SCHEMAS; `make schemas` writes them.
PUBLISHED = ("experiment", "profile", "suite")


def all_ids() -> list[str]:
    """List the ids of all experiments except the lab's, which need another kernel or clock."""
    files = experiment_files().items()
    return sorted(name for name, path in files if path.parent != EXPERIMENTS / "lab")


def results_folder(args: argparse.Namespace) -> Path:
    """Return the results folder of a command line, which need not exist yet.

    Raises: UsageError if runs cannot be written to it, or if root would write where another user
        can put a link in place of a file.
    """
    from tempfile import TemporaryDirectory

    folder: Path = args.results
    if os.geteuid() == 0 and not args.trust_owner_of_results:
        _refuse_others(folder)
    existing = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    try:
        with TemporaryDirectory(prefix=".", dir=existing):
            return folder
    except OSError as error:
        raise UsageError(
            f"--results: {folder}: runs cannot be written to it: {error.strerror}"
        ) from error


def _refuse_others(folder: Path) -> None:
    """Raise UsageError if another user than root can change a folder, or one on its way."""
    from twoway.confinement import SETTING
    from twoway.contract.folders import changeable_by_others

    if os.environ.get(SETTING) == "container":  # whose root has no files but the image's
        return
    if theirs := changeable_by_others(folder):
        raise UsageError(
            f"--results: {folder}: another user can change {theirs}, and could thereby have root "
            "change any file",
            "run twoway as that user, or name a folder of root's; if that user may become root, "
            "add --trust-owner-of-results",
        )


def run_again(args: argparse.Namespace, name: str, *words: str, command: str = "run") -> str:
    """Write a command on a point, with further words and this command line's options."""
    usual = {"results": results(), "backend": "uml", "kernel": None}
    given = {option: getattr(args, option, value) for option, value in usual.items()}
    options = [
        word
        for option, value in given.items()
        if value != usual[option]
        for word in (f"--{option}", str(value))
    ]
    return shlex.join(["twoway", command, name, *words, *options])


def complain(text: str, hint: str = "") -> None:
    """Print an error on standard error, each line after the program's name, then its hint."""
    for line in text.splitlines():
        print(f"twoway: {cut_line(line)}", file=sys.stderr)
    if hint:
        print(f"\nhint: {cut_line(hint)}", file=sys.stderr)


def shorten_path(path: Path) -> Path:
    """Shorten a path for display: relative to the current folder if below it."""
    path = path.resolve()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path

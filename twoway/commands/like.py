"""The subcommand that writes an experiment like a capture, and runs it."""

import argparse
import json
from pathlib import Path

from twoway.commands.options import JSON, KERNEL, RESULTS, option, shorten_path
from twoway.errors import SpecError, UsageError
from twoway.messages import say

HELP = "an experiment that resembles a capture: written, run, and compared with the capture"
OPTIONS = (
    option("capture", type=Path, help="pcap or pcapng, made near the data's sender"),
    option(
        "--to",
        type=Path,
        default=Path("like.yml"),
        metavar="FILE",
        help="the experiment's new file (default: %(default)s)",
    ),
    JSON,
    RESULTS,
    KERNEL,
)


def run(args: argparse.Namespace) -> int:
    """Write an experiment that resembles a capture, run it, and print how well metrics agree."""
    import yaml
    from capture_analysis.errors import AnalysisError

    from twoway.backends.registry import find_backend
    from twoway.report.flow_table import align_columns
    from twoway.runs.points import load_point
    from twoway.runs.run import run_watched
    from twoway.sweeps.likeness import compare_with, experiment_like, transfers_of

    if args.to.exists():
        raise UsageError(f"{args.to}: exists already", "--to names another file")
    try:
        transfers = transfers_of(args.capture)
    except AnalysisError as error:
        raise UsageError(str(error)) from error
    document, assumed = experiment_like(transfers, f"Like {args.capture.name:.80}")
    backend, text = find_backend("uml", args.kernel), yaml.safe_dump(document, sort_keys=False)
    try:
        args.to.write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"--to: {args.to}: {error.strerror}") from error
    try:
        point = load_point(str(args.to))
    except SpecError as error:
        args.to.unlink()
        raise UsageError(
            f"{args.capture}: no link of a testbed is like its path: {error}"
        ) from error
    folder = run_watched(point, backend, args.results)
    rows = compare_with(transfers, folder)
    if args.json:
        found = {"experiment": str(args.to), "run": str(folder), "rows": rows, "assumed": assumed}
        print(json.dumps(found, indent=1))
    else:
        table = [("flow", "metric", "capture", "run", "run / capture")]
        for flow, name, theirs, ours in rows:
            ratio = f"{ours / theirs:.3f}" if theirs and ours is not None else ""
            table.append((flow, name, f"{theirs:.4g}", _written(ours), ratio))
        print(*align_columns(table, left=2), sep="\n")
    for sentence in assumed:
        say(sentence)
    say(f"the experiment: {shorten_path(args.to)}; its run: {shorten_path(folder)}")
    return 0


def _written(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"

"""The subcommand that compares experiments with the papers."""

import argparse
import json

from twoway.commands.options import (
    BACKEND,
    CREW,
    EXPERIMENTS_OR_ALL,
    JSON,
    KERNEL,
    NEW_RUNS,
    all_ids,
    option,
    shorten_path,
)
from twoway.commands.sweep import judge_points, named_points, run_all
from twoway.contract.writing import chown_like_parent, make_folder
from twoway.messages import say

# The standards of claims, in words.
_FORMS = {"digits": "numbers in print", "formula": "formulas", "words": "in words"}
HELP = "the reproduction report: `sweep`, and everything compared with the papers"
OPTIONS = (
    EXPERIMENTS_OR_ALL,
    option(
        "--keep-captures",
        action="store_true",
        help="keep the captures of all runs; by default runs of this command keep only the "
        "captures that a page needs; `twoway run POINT` makes the others again",
    ),
    JSON,
    *NEW_RUNS,
    *CREW,
    BACKEND,
    KERNEL,
)


def run(args: argparse.Namespace) -> int:
    """Run experiments as `sweep` does, and write the reproduction report."""
    from twoway.report.paper_page import COUNTED
    from twoway.report.papers_site import write_site
    from twoway.report.results import read_results
    from twoway.report.sweep_page import write_sweep_pages
    from twoway.runs.clean import remove_captures

    outcomes = run_all(args, named_points(args.experiments))
    done = [outcome.folder for outcome in outcomes if outcome.folder]
    make_folder(args.results / "papers")
    failed = {outcome.id: outcome.error for outcome in outcomes if not outcome.folder}
    document = write_site(done, args.results / "papers", len(all_ids()), [*failed])
    chown_like_parent(args.results / "papers")
    for page in write_sweep_pages(read_results(done), args.results, failed):
        chown_like_parent(page.parent)
    shown_by = {name for paper in document["papers"] for name in paper["pictured"]}
    # A run that existed before belongs to the user.
    made = [(each.id, each.folder) for each in outcomes if each.folder and not each.kept]
    for name, folder in made:
        if name not in shown_by and not args.keep_captures:
            remove_captures(folder)
    if args.json:
        print(json.dumps(document, indent=1))
    status = judge_points(args, outcomes)
    for paper in document["papers"]:
        words = [f"{paper[each]} {each}" for each in (v.value for v in COUNTED) if paper[each]]
        agree = [
            f"{found['agrees']} of {found['claims']} {_FORMS[form]}"
            for form, found in paper["forms"].items()
            if found["claims"]
        ]
        claims = f"{paper['claims']} claims: {', '.join(words)}; agrees: {', '.join(agree)}; "
        claims = claims if agree else ""
        kept = f"{paper['kept']} of {paper['predictions']} predictions kept"
        if paper["contradicted"]:
            kept += f", {paper['contradicted']} contradicted, on record"
        if paper["testbed_checks"]:
            kept += f"; {paper['testbed_checks_kept']} of {paper['testbed_checks']} testbed checks"
        say(f"{paper['title']}: {claims}{kept}")
    say(f"report: {shorten_path(args.results / 'papers/index.html')}")
    return status

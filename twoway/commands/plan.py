"""The subcommand that prints the commands of a run."""

import argparse
from typing import TYPE_CHECKING

from twoway.commands.options import EXPERIMENT, JSON

if TYPE_CHECKING:
    from twoway.contract.plan import Daemon, Step

HELP = "the commands of a run, in order"
# In the guest's order of execution.
_PARTS_OF_A_PLAN = (
    *("setup", "recorders", "captures", "sinks", "sources"),
    *("at_start", "changes", "user_programs", "teardown"),
)
OPTIONS = (EXPERIMENT, JSON)


def run(args: argparse.Namespace) -> int:
    """Print the commands of a run's plan, in order, without running them."""
    from twoway.plan.plan import build_plan
    from twoway.runs.points import load_point

    document = build_plan(load_point(args.experiment), in_kernel=True)
    if args.json:
        print(document.json_text())
        return 0
    for part in _PARTS_OF_A_PLAN:
        for step in getattr(document, part):
            _print_step(step)
    return 0


def _print_step(step: "Step | Daemon") -> None:
    where = f"[{step.node or 'guest'}]"
    if step.kind == "set_sysctls":
        for name, value in step.sysctls.items():
            print(f"{where} sysctl -w {name}='{value}'")
        return
    if step.kind == "set_parameters":
        for name, value in step.parameters.items():
            print(f"{where} echo {value} > /sys/module/{step.module}/parameters/{name}")
        return
    if step.kind == "set_offloads":
        print(where, "ethtool -K", step.interface, *(f"{name} off" for name in step.off))
        return
    if step.kind == "copy":
        print(where, "cat", step.source)
        return
    for written in getattr(step, "lines", ()):
        print(f"[{written.node or 'guest'}] echo '{written.text}' > /dev/twoway_testbed")
    if step.run:
        print(where, " ".join(step.run))
    for line in getattr(step, "stdin", ()):
        print(where, "   ", line)

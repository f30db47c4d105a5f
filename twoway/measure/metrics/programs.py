"""Run time of the programs that the experiment names, such as curl."""

import math

from capture_analysis.definition import Definition

from twoway.contract.network import ProgramRun
from twoway.measure.analysis import Analysis
from twoway.measure.metric import Scope, estimates

RUN_TIME = Definition("run_time", "s", "from a program's start to its end, if it ends by itself")


@estimates(Scope.PROGRAM, RUN_TIME)
def run_time(_analysis: Analysis, program: ProgramRun) -> tuple[float]:
    """Return the time; NaN if the program ran until it was asked to end."""
    return ((program.end_ns - program.start_ns) / 1e9 if program.by_itself else math.nan,)

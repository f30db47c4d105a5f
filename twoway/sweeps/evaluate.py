"""Evaluations: requests in JSON lines, from a program that searches, and their answers.

An answer is the metrics of one run, or an error as data: no request ends another one. Answers of
runs with the same identity and the same measuring code are kept.
"""

import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated, Any, NamedTuple, NoReturn

from capture_analysis.errors import AnalysisError
from pydantic import Field

from twoway.backends.backend import Backend
from twoway.backends.own_modules import CompileError
from twoway.backends.registry import backend_for
from twoway.contract.expression import ExpressionError, read_asked, with_derived
from twoway.contract.judge import Verdict
from twoway.contract.metrics import Metrics
from twoway.contract.model import Model, Positive, read_json
from twoway.contract.suite import AXIS
from twoway.contract.writing import out_of_space
from twoway.description.experiment import MOST_SEEDS
from twoway.description.matrix import Value, find_points
from twoway.description.own_modules import OwnModule
from twoway.description.point import Point, find_source, make_point
from twoway.description.reading import ExperimentSource, load_experiment, validate_document
from twoway.description.suite import STATEMENTS, control_of, with_control
from twoway.errors import DiskFullError, RunError, SpecError, TwowayError, UsageError, in_a_sentence
from twoway.manifest import SEED
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.measure.registry import metric_names
from twoway.measure.revision import revision
from twoway.messages import suggest
from twoway.paths import cache as cache_folder
from twoway.runs.identity import identity
from twoway.runs.run import run_experiment
from twoway.sweeps.sweep import Outcome
from twoway.sweeps.workers import workers

# Most characters of a request; a module of our own has 25,000.
_LONGEST_LINE = 1 << 20
# Time from a swallowed end of a run to the next one.
_AGAIN_S = 0.01
# The axis by which a request's `set` reaches an experiment's fields.
_SET = "evaluation"


class Evaluation(Model):
    """A request: a run to make, and the metrics to answer with."""

    id: str | int | None = Field(default=None, description="any name; the answer repeats it")
    environment: str | dict[str, Any] = Field(
        description="an experiment's id or file, a row of a suite, such as quick/alone, with "
        "@AXIS=VALUE,... where it is a sweep; or an experiment's fields"
    )
    control: str = Field(
        default="",
        description="the congestion control: its name, its C file, or its C source; of the flows "
        "that the environment's axis `control` sets, else of the first flow; by default the "
        "environment's own",
    )
    set: dict[str, Value] = Field(
        default={}, description="more fields, by the paths that an axis has: flows.NAME.FIELD, ..."
    )
    seed: Annotated[int, Field(ge=1, le=MOST_SEEDS)] | None = Field(
        default=1,
        description="the repetition: starts, losses and sizes are drawn from it; null: none, as "
        "`twoway run` without `--seeds`",
    )
    metrics: list[str] = Field(
        default=[], description="names, or NAME=FORMULA; by default all that the run has"
    )
    longest_s: Positive | None = Field(
        default=None, description="wall time after which the run is given up; default: --longest"
    )


class Job(NamedTuple):
    """A request for a worker: its place in the input, its text, and how it is run.

    Attributes:
        scratch: folder of the worker's temporary files; by default the system's.
    """

    name: str
    line: str
    backend: Backend
    longest_s: float
    scratch: str | None = None


class TimeBudgetError(TwowayError):
    """A run that took more wall time than it may."""


def evaluate(
    lines: Iterable[str], backend: Backend, *, count: int, longest_s: float
) -> Iterator[dict[str, Any]]:
    """Answer requests, JSON objects, as they come, each as soon as its run ends.

    A request that names no wall time has `longest_s`.

    Yields: the answers, in the order in which runs end.
    Raises: DiskFullError.
    """
    answers: SimpleQueue[Any] = SimpleQueue()
    free = threading.Semaphore(2 * count)  # one waits for each that runs
    ended = threading.Event()
    with ExitStack() as stack:
        # What a killed worker leaves goes with this folder; its guest may write to the last.
        folder = tempfile.TemporaryDirectory(prefix="twoway-", ignore_cleanup_errors=True)
        scratch = stack.enter_context(folder)
        executor, run = stack.enter_context(workers(count, _answered))
        stack.callback(ended.set)

        def read() -> None:
            asked = 0
            try:
                for number, line in enumerate(lines, 1):
                    if not line.strip():
                        continue
                    free.acquire()
                    if ended.is_set():
                        return
                    job: Any = Job(f"line {number}", line, backend, longest_s, scratch)
                    future = executor.submit(run, job)
                    future.add_done_callback(partial(_put, answers, job))
                    asked += 1
            except BaseException as error:  # noqa: BLE001 - raised where the answers are read
                answers.put(error)
            answers.put(asked)

        threading.Thread(target=read, daemon=True).start()
        asked, done = sys.maxsize, 0
        while done < asked:
            answer = answers.get()
            if isinstance(answer, int):
                asked = answer
                continue
            free.release()
            done += 1
            if isinstance(answer, BaseException):
                raise answer
            yield answer


def _put(answers: "SimpleQueue[Any]", job: Job, future: Any) -> None:
    """Put what came of a request among the answers."""
    found = None if future.cancelled() else future.exception() or future.result()
    if isinstance(found, Outcome):  # its process was killed
        found = {"id": _id_of(job.line), "line": job.name, **_error("killed", found.error)}
    answers.put(found)


def _id_of(line: str) -> Any:
    """Return a request's id, if it has one."""
    try:
        found = read_json(line)
    except ValueError:
        return None
    return found.get("id") if isinstance(found, dict) else None


def _answered(job: Job) -> dict[str, Any]:
    """Answer one request, in a worker's process."""
    began = time.monotonic()
    tempfile.tempdir = job.scratch
    answer: dict[str, Any] = {"id": _id_of(job.line), "line": job.name}
    try:
        with in_a_sentence(job.name, RunError):
            asked = _read(job)
            with _at_most(asked.longest_s or job.longest_s):
                answer |= _evaluated(job, asked)
    except DiskFullError:
        raise
    except CompileError as error:
        answer |= _error("compiler", str(error))
    except TimeBudgetError as error:
        answer |= _error("time", str(error))
    except (SpecError, UsageError) as error:
        answer |= _error("request", str(error), error.hint)
    except (TwowayError, AnalysisError) as error:
        answer |= _error("run", str(error), getattr(error, "hint", ""))
    except OSError as error:
        if out_of_space(error):
            raise DiskFullError(f"{job.name}: {error}") from error
        answer |= _error("run", str(error))
    return {**answer, "wall_s": round(time.monotonic() - began, 3)}


def _error(kind: str, message: str, hint: str = "") -> dict[str, Any]:
    return {"error": {"kind": kind, "message": message, **({"hint": hint} if hint else {})}}


@contextmanager
def _at_most(longest_s: float) -> Iterator[None]:
    """Raise TimeBudgetError in this thread, a process's first one, after some wall time.

    Code in C may swallow it, and report that to `sys.unraisablehook`, or fail with another error.
    """
    over = TimeBudgetError(f"not finished after {longest_s:g} s of wall time")
    hook, ended = sys.unraisablehook, False

    def end(*_: object) -> NoReturn:
        nonlocal ended
        ended = True
        raise over

    def swallowed(said: Any) -> None:
        if said.exc_value is over:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            hook(said)

    before, sys.unraisablehook = signal.signal(signal.SIGALRM, end), swallowed
    signal.setitimer(signal.ITIMER_REAL, longest_s)
    try:
        yield
    except Exception as error:
        if ended and error is not over:
            raise over from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook


def _read(job: Job) -> Evaluation:
    """Read a request; raise SpecError with every problem of its fields."""
    if len(job.line) > _LONGEST_LINE:
        raise SpecError([f"{job.name}: more than {_LONGEST_LINE} characters"])
    try:
        fields = read_json(job.line, unique_keys=True)
    except ValueError as error:
        raise SpecError([f"{job.name}: not JSON: {error}"]) from error
    if not isinstance(fields, dict):
        raise SpecError([f"{job.name}: must be a JSON object, got {type(fields).__name__}"])
    return validate_document(job.name, fields, Evaluation)


def _evaluated(job: Job, asked: Evaluation) -> dict[str, Any]:
    """Find or make the run of a request, and return its metrics."""
    try:
        names, derived = read_asked(asked.metrics)
    except ExpressionError as error:
        raise SpecError([f"{job.name}: metrics: {error}"]) from error
    point = point_for(job, asked)
    known = {*point.metrics, *derived}
    if missing := [name for name in names if name not in known]:
        raise SpecError(
            [f"{job.name}: metrics: {missing[0]:.80}: no such metric{suggest(missing[0], known)}"]
        )
    backend = backend_for(point, job.backend)
    key = identity(point, backend)
    file = cache_folder() / "evaluations" / f"{key}-{revision()}.json"
    try:
        measured, kept = Metrics.read(file), True
    except (OSError, ValueError):
        measured, kept = _measured(point, backend), False
        file.parent.mkdir(parents=True, exist_ok=True)
        measured.write(file)
    metrics, reasons = with_derived(measured.metrics, derived, point.values)
    shown = {name: metrics[name].model_dump() for name in names or metrics}
    for name in reasons:
        shown[name]["reason"] = reasons[name]
    failed = [
        row.model_dump(mode="json") for row in measured.fidelity if row.verdict is not Verdict.PASS
    ]
    return {
        "identity": key,
        "kept": kept,
        "sound": measured.sound,
        "metrics": shown,
        "fidelity": failed,
    }


def _measured(point: Point, backend: Backend) -> Metrics:
    """Make a run in a folder of its own, and measure it."""
    with tempfile.TemporaryDirectory(prefix="twoway-") as scratch:
        folder = run_experiment(point, backend, Path(scratch), scratch=True)
        with in_a_sentence(point.id, AnalysisError):
            return compute(Analysis(folder)).model_copy(update={"analysis": revision()})


def point_for(job: Job, asked: Evaluation) -> Point:
    """Make the one point of an experiment that a request asks for."""
    source, named = _source(job, asked.environment)
    fields, module = _with_control(job, source, asked.control)
    matrix = {**fields.get("matrix", {})}
    for number, (path, value) in enumerate(asked.set.items()):
        matrix[f"{_SET}{number}"] = {"set": [path], "to": {"set": value}}
    fields = {key: value for key, value in fields.items() if key not in {SEED, "seeds"}}
    fields["matrix"] = matrix
    modules = (*source.modules, module) if module else source.modules
    changed = replace(source, document=fields, modules=modules)
    experiment = load_experiment(changed)
    found = find_points(source.where, experiment.matrix, named)
    if len(found) > 1:
        free = {axis for axis in experiment.matrix if len({str(each[axis]) for each in found}) > 1}
        axes = ", ".join(sorted(free))
        many = f"{len(found)} points; one has a value for each of {axes}"
        raise SpecError([f"{job.name}: environment: {many}"], "as NAME@AXIS=VALUE,AXIS=VALUE")
    at = found[0] if asked.seed is None else {**found[0], SEED: asked.seed}
    return make_point(changed, load_experiment(changed, at), metric_names, at)


def _source(job: Job, environment: str | Mapping[str, Any]) -> tuple[ExperimentSource, str]:
    """Find an environment, and the point that its name has."""
    if isinstance(environment, str):
        name, _, named = environment.partition("@")
        return find_source(name), named
    file = Path("evaluation.yml")  # files that it names are relative to the current folder
    return ExperimentSource(file.stem, f"{job.name}: environment", file, dict(environment)), ""


def _with_control(
    job: Job, source: ExperimentSource, control: str
) -> tuple[dict[str, Any], OwnModule | None]:
    """Give an environment's flows a control; return its fields, and the control's module.

    Statements, which are about the file's own points, are left out.
    """
    fields = {key: value for key, value in source.document.items() if key not in STATEMENTS}
    if not control:
        return fields, None
    name, module = _control(control)
    if AXIS not in fields.get("matrix", {}):
        flows = load_experiment(source).flows
        if not flows:
            raise SpecError([f"{job.name}: control: the environment has no flow"])
        axis = {"set": [f"flows.{flows[0].name}.congestion"], "to": [name]}
        fields["matrix"] = {**fields.get("matrix", {}), AXIS: axis}
    return with_control(fields, name, own=module is not None), module


@cache
def _control(control: str) -> tuple[str, OwnModule | None]:
    """Read a control: a name, a file, or C source, which has more than one line."""
    if "\n" not in control:
        return control_of(control)
    with tempfile.TemporaryDirectory(prefix="twoway-") as folder:
        file = Path(folder) / "tcp_evaluated.c"
        file.write_text(control, "utf-8")
        try:
            return control_of(str(file))
        except SpecError as error:
            problems = [each.replace(f"{folder}/", "") for each in error.problems]
            raise SpecError(problems, error.hint) from error

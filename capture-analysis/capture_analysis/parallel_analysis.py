"""Analyse captures on several cores or machines, with equal results.

Connections are independent, so a part of a capture is the connections whose number has a given
remainder. Every worker reads the whole capture, which is cheap, and follows its own connections. A
worker gets only a path and returns sums and histograms, which add up exactly.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capture_analysis.errors import AnalysisError
from capture_analysis.flow_table import FlowTable
from capture_analysis.one_capture.document import FLOWS_LISTED, SCHEMA, document
from capture_analysis.one_capture.single import NOTHING, Given, Measured, Part, measure
from capture_analysis.reading.byte_source import ByteSource
from capture_analysis.reading.capture import Capture
from capture_analysis.reading.datagrams import Datagrams
from capture_analysis.reading.parsing import Counts

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

SUFFIXES = (".pcap", ".pcapng", ".cap")
COMPRESSED = ("", ".gz", ".zst", ".xz")
# A part of fewer bytes is not worth the start of another process.
LEAST_PART_BYTES = 1 << 28
# Number of retries of a part when its worker dies, for instance with its machine.
RETRIES = 2
# A Python that starts with this variable does not look for modules in the current folder.
_SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def own_modules_only() -> Iterator[None]:
    """Start Python processes, in a `with`, that run no file of the current folder.

    multiprocessing starts its processes and servers as `python -c`. Such a Python would import a
    random.py beside the user's files in place of Python's own module.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


@contextmanager
def processes(workers: int) -> Iterator["Executor | None"]:
    """Start worker processes; return None, for this process, if one suffices."""
    if workers == 1:
        yield None
        return
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - takes 20 ms

    with own_modules_only(), ProcessPoolExecutor(workers) as pool:
        yield pool


@contextmanager
def dask(workers: int, scheduler: str | None) -> Iterator["Executor"]:
    """Connect to the workers of a Dask scheduler, given or new.

    Args:
        workers: number of processes to start if there is no scheduler.
        scheduler: address of a running scheduler, such as tcp://lab:8786; its workers must see
            the captures under the same paths.

    Raises: AnalysisError if the scheduler does not answer.
    """
    import logging  # noqa: PLC0415 - takes 5 ms

    from distributed import Client, LocalCluster  # noqa: PLC0415 - takes a second

    if scheduler is None:
        with (
            own_modules_only(),
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address=None,
                memory_limit=0,
                silence_logs=logging.CRITICAL,  # a stopped worker logs complaints
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client.get_executor(pure=False, retries=RETRIES)
        return
    try:
        client = Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise AnalysisError(f"--scheduler {scheduler}: {error}") from error
    with client:
        yield client.get_executor(pure=False, retries=RETRIES)


@dataclass(frozen=True)
class _WasRead:
    """The parts of a read Capture that results need; it can be pickled."""

    path: Path
    format: str
    warnings: list[str]
    flows: FlowTable
    counts: Counts
    datagrams: Datagrams


def measure_part(path: Path, given: Given, part: Part) -> Measured | AnalysisError:
    """Measure a part of a capture, as the job of one worker.

    An AnalysisError is returned, not raised: Dask would retry and log a raised one.
    """
    if part.index:
        ByteSource.watch = None  # all workers read the same file: one shows the progress
    capture = Capture(path, inside=given.inside)
    try:
        measured = measure(capture, given, part)
    except AnalysisError as error:
        return error
    measured.capture = _WasRead(**{f.name: getattr(capture, f.name) for f in fields(_WasRead)})
    return measured


def parts_of(path: Path, workers: int) -> int:
    """Choose the number of parts, none smaller than LEAST_PART_BYTES."""
    if not path.is_file():
        return 1
    return max(1, min(workers, path.stat().st_size // LEAST_PART_BYTES))


@dataclass(frozen=True)
class Pending:
    """A capture that workers measure in parts."""

    path: Path
    parts: list["Future[Measured | AnalysisError]"]

    def result(self) -> Measured:
        """Wait for all parts and merge them.

        Raises: AnalysisError if the capture cannot be measured.
        """
        whole, *others = (_require(part.result()) for part in self.parts)
        for other in others:
            whole.merge(other)
        return whole


def _require(found: Measured | AnalysisError) -> Measured:
    if isinstance(found, AnalysisError):
        raise found
    return found


def submit(executor: "Executor", path: Path, parts: int, given: Given = NOTHING) -> Pending:
    """Submit the measurement of a capture in `parts` parts."""
    return Pending(
        path,
        [executor.submit(measure_part, path, given, Part(index, parts)) for index in range(parts)],
    )


def measure_file(path: Path, given: Given, workers: int) -> Measured:
    """Measure a capture on as many cores as its size is worth.

    Args:
        path: a capture; "-" is standard input.
        given: the user's knowledge of the capture.
        workers: the largest number of processes.
    """
    parts = parts_of(path, workers)
    with processes(parts) as pool:
        if pool is None:
            return measure(Capture(path, inside=given.inside), given)
        return submit(pool, path, parts, given).result()


def captures_in(folder: Path) -> list[Path]:
    """List the captures below a folder, by name.

    Raises: AnalysisError if there is none.
    """
    endings = tuple(suffix + packed for suffix in SUFFIXES for packed in COMPRESSED)
    found = sorted(path for path in folder.rglob("*") if path.name.endswith(endings))
    if not found:
        raise AnalysisError(
            f"{folder}: no captures ({', '.join(SUFFIXES)}, compressed or not) in it"
        )
    return found


def analyse_all(
    captures: Sequence[Path],
    executor: "Executor",
    workers: int,
    given: Given = NOTHING,
    flows: int = FLOWS_LISTED,
) -> Iterator[dict[str, Any]]:
    """Yield the documents of captures, in order, each when it is done.

    The document of a capture that cannot be analysed has "error" instead of results.

    Args:
        captures: the files.
        executor: the workers.
        workers: number of the executor's workers.
        given: the user's knowledge of the captures.
        flows: number of connections to list for each capture.
    """
    pending = [
        submit(executor, path.resolve(), parts_of(path, workers), given) for path in captures
    ]
    for each in pending:
        try:
            yield document(each.result(), flows)
        except AnalysisError as error:
            yield {"schema": SCHEMA, "capture": {"path": str(each.path)}, "error": str(error)}

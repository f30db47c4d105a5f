"""Captures on several cores and on several machines, with the same code and the same results.

Connections are independent: a part of a capture is those whose number has a given remainder. Every
worker reads the whole capture, which is the cheap part, and follows its own connections. Nothing
is sent to it but a path, and nothing comes back but sums and histograms, which add up exactly.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capture_analysis.columns import FlowTable
from capture_analysis.errors import AnalysisError
from capture_analysis.one_capture.document import FLOWS_LISTED, SCHEMA, document
from capture_analysis.one_capture.single import NOTHING, Given, Measured, Part, measure
from capture_analysis.reading.byte_source import ByteSource
from capture_analysis.reading.capture import Capture
from capture_analysis.reading.parsing import Counts

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

SUFFIXES = (".pcap", ".pcapng", ".cap")
COMPRESSED = ("", ".gz", ".zst", ".xz")
# Below it another process costs more than it saves.
LEAST_PART_BYTES = 1 << 28
# A worker that dies (its machine does) costs its parts another try.
RETRIES = 2


@contextmanager
def processes(workers: int) -> Iterator["Executor | None"]:
    """So many processes on this machine; None, which is this very process, for one."""
    if workers == 1:
        yield None
        return
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - takes 20 ms

    with ProcessPoolExecutor(workers) as pool:
        yield pool


@contextmanager
def dask(workers: int, scheduler: str | None) -> Iterator["Executor"]:
    """Dask's workers: those of a scheduler, or so many on this machine.

    Args:
        workers: how many processes to start, without a scheduler.
        scheduler: address of one that runs, such as tcp://lab:8786; its workers must see the
            captures under the same paths.

    Raises: AnalysisError if the scheduler does not answer.
    """
    import logging  # noqa: PLC0415 - takes 5 ms

    from distributed import Client, LocalCluster  # noqa: PLC0415 - takes a second

    if scheduler is None:
        with (
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address=None,
                memory_limit=0,
                silence_logs=logging.CRITICAL,  # a worker that is told to go need not complain
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
    """A Capture that was read, without what read it: it can go to another process."""

    path: Path
    format: str
    warnings: list[str]
    flows: FlowTable
    counts: Counts


def measure_part(path: Path, given: Given, part: Part) -> Measured | AnalysisError:
    """Measure a part of a capture, which is what a worker does, or say why it cannot be.

    The error is a result: raised in a worker, Dask would try again and log it each time.
    """
    if part.index:
        ByteSource.watch = None  # one worker's progress is that of all
    capture = Capture(path)
    try:
        measured = measure(capture, given, part)
    except AnalysisError as error:
        return error
    measured.capture = _WasRead(**{f.name: getattr(capture, f.name) for f in fields(_WasRead)})
    return measured


def parts_of(path: Path, workers: int) -> int:
    """Into how many parts to divide a capture: no smaller ones than are worth a process."""
    if not path.is_file():
        return 1
    return max(1, min(workers, path.stat().st_size // LEAST_PART_BYTES))


@dataclass(frozen=True)
class Pending:
    """A capture whose parts are being measured, maybe elsewhere."""

    path: Path
    parts: list["Future[Measured | AnalysisError]"]

    def result(self) -> Measured:
        """The whole, once all parts are there.

        Raises: AnalysisError if the capture cannot be measured.
        """
        whole, *others = (_measured(part.result()) for part in self.parts)
        for other in others:
            whole.merge(other)
        return whole


def _measured(found: Measured | AnalysisError) -> Measured:
    if isinstance(found, AnalysisError):
        raise found
    return found


def submit(executor: "Executor", path: Path, parts: int, given: Given = NOTHING) -> Pending:
    """Have a capture measured in so many parts."""
    return Pending(
        path,
        [executor.submit(measure_part, path, given, Part(index, parts)) for index in range(parts)],
    )


def measure_file(path: Path, given: Given, workers: int) -> Measured:
    """Measure a capture on as many cores as pay.

    Args:
        path: a capture; "-" is standard input.
        given: what is known of it.
        workers: use so many processes at most.
    """
    parts = parts_of(path, workers)
    with processes(parts) as pool:
        if pool is None:
            return measure(Capture(path), given)
        return submit(pool, path, parts, given).result()


def captures_in(folder: Path) -> list[Path]:
    """The captures below a folder, by name.

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
    """The documents of several captures, in their order, each as soon as it is done.

    A capture that cannot be analysed has a document with "error" instead.

    Args:
        captures: their files.
        executor: who does the work.
        workers: how many it has.
        given: what is known of the captures.
        flows: how many connections to list of each.
    """
    pending = [
        submit(executor, path.resolve(), parts_of(path, workers), given) for path in captures
    ]
    for each in pending:
        try:
            yield document(each.result(), flows)
        except AnalysisError as error:
            yield {"schema": SCHEMA, "capture": {"path": str(each.path)}, "error": str(error)}

"""Running points of a sweep on this machine, each worker in a process.

If a process is killed, only its own point is tried again: every worker has a separate pool, because
a pool fails all of its work when one of its processes dies.
"""

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from capture_analysis.one_capture.memory import give_back
from capture_analysis.parallel_analysis import RETRIES, own_modules_only

from twoway.errors import DiskFullError, RunError
from twoway.progress import Steps
from twoway.sweeps.sweep import Crew, Outcome, Work, run_point

# Fork from a server with one thread: a fork of this process may copy a lock that another thread
# holds, such as the one that draws progress.
_CONTEXT = multiprocessing.get_context("forkserver")


class _Workers:
    """Worker processes, each of them free or running a point."""

    def __init__(self, count: int, task: Callable[[Any], Any]) -> None:
        self._task = task
        self._free: SimpleQueue[ProcessPoolExecutor] = SimpleQueue()
        self._lock = threading.Lock()
        self._ended = False
        for _ in range(count):
            self._free.put(_process())

    def run(self, work: Work) -> Any:
        """Run a point on the next free worker; called in a thread that waits."""
        worker = self._free.get()
        try:
            for _ in range(1 + RETRIES):
                try:
                    return self._begin(worker, work).result()
                except BrokenProcessPool:
                    worker = _process()
        finally:
            self._free.put(worker)
        killed = f"its process was killed {1 + RETRIES} times; if memory ran out, dmesg says so"
        return Outcome(work.name, error=killed)

    def _begin(self, worker: ProcessPoolExecutor, work: Work) -> Future[Any]:
        with self._lock:
            if self._ended:
                raise InterruptedError
            return worker.submit(_run, self._task, work)

    def end(self) -> None:
        """Kill all running points and start no more."""
        with self._lock:
            self._ended = True
            for process in multiprocessing.active_children():
                process.terminate()

    def close(self) -> None:
        """End the processes, once none runs a point."""
        while not self._free.empty():
            self._free.get().shutdown()


@contextmanager
def workers(count: int, task: Callable[[Any], Any] = run_point) -> Iterator[Crew]:
    """Start worker processes, which end with this one, even if it is killed.

    The task's result comes back for each point, and an Outcome for one that is killed.
    """
    _CONTEXT.set_forkserver_preload([__name__])
    with own_modules_only(), ThreadPoolExecutor(count) as threads:
        crew = _Workers(count, task)  # starts a Python that cleans up after killed processes
        try:
            yield threads, crew.run
        except DiskFullError:  # let running points finish: they may be small enough
            threads.shutdown(wait=True, cancel_futures=True)
            raise
        except BaseException:
            crew.end()
            threads.shutdown(wait=True, cancel_futures=True)
            raise
        finally:
            crew.close()


def run_each(
    works: Sequence[Work], task: Callable[[Work], Any], count: int, what: str
) -> Iterator[Any]:
    """Carry out a task in worker processes, and show progress.

    Yields: the results, in the order of `works`.
    Raises: RunError if a process was killed.
    """
    with Steps() as steps, workers(count, task) as (threads, run):
        steps.begin(what, len(works))
        for found in threads.map(run, works):
            steps.advance()
            if isinstance(found, Outcome):
                raise RunError(found.error)
            yield found


def _process() -> ProcessPoolExecutor:
    """Make a pool of one process, which starts with its first point."""
    return ProcessPoolExecutor(1, mp_context=_CONTEXT, initializer=_begin)


def _begin() -> None:
    """Prepare this process for its points."""
    gc.freeze()  # loaded objects stay: `give_back_memory` need not search them after each point
    _end_with_parent()


def _end_with_parent() -> None:
    """End this process, and the guest it runs, when the sweep's process ends."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _run(task: Callable[[Any], Any], work: Work) -> Any:
    try:
        outcome = task(work)
    except KeyboardInterrupt:  # a worker of a pool would continue with the next point
        os._exit(1)
    give_back_memory()
    return outcome


def give_back_memory() -> None:
    """Return the memory of a point's analysis to the system.

    Figures are in reference cycles, and glibc keeps memory that Python frees: of 850 MB for
    captures of 800 000 packets at six interfaces, the process still held 540 MB while the next
    guest ran. With this function it holds 35 MB.
    """
    gc.collect()
    give_back()

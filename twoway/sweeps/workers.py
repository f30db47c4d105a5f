"""Points of a sweep on this machine: as many at once as there are workers, in a process each.

A process that is killed costs its point another try and the others nothing: every worker has a pool
of its own, because a pool gives up all that it was given when one of its processes dies.
"""

import ctypes
import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from capture_analysis.scale import RETRIES

from twoway.backends.backend import Backend
from twoway.errors import DiskFullError
from twoway.sweeps.sweep import Crew, Outcome, run_point

# From a server with one thread: a fork of this process, which draws progress, may copy a lock
# that another thread holds.
_CONTEXT = multiprocessing.get_context("forkserver")


class _Workers:
    """Workers, each of them free or with a point."""

    def __init__(self, count: int) -> None:
        self._free: SimpleQueue[ProcessPoolExecutor] = SimpleQueue()
        self._lock = threading.Lock()
        self._ended = False
        for _ in range(count):
            self._free.put(_process())

    def run(self, name: str, backend: Backend, results: Path) -> Outcome:
        """Have the next free worker run a point; called in a thread that waits for it."""
        worker = self._free.get()
        try:
            for _ in range(1 + RETRIES):
                try:
                    return self._begin(worker, name, backend, results).result()
                except BrokenProcessPool:
                    worker = _process()
        finally:
            self._free.put(worker)
        killed = f"its process was killed {1 + RETRIES} times; if memory ran out, dmesg says so"
        return Outcome(name, error=killed)

    def _begin(
        self, worker: ProcessPoolExecutor, name: str, backend: Backend, results: Path
    ) -> Future[Outcome]:
        with self._lock:
            if self._ended:
                raise InterruptedError
            return worker.submit(_work, name, backend, results)

    def end(self) -> None:
        """Kill what runs, and begin nothing more."""
        with self._lock:
            self._ended = True
            for process in multiprocessing.active_children():
                process.terminate()

    def close(self) -> None:
        """Have the processes end; none has a point any more."""
        while not self._free.empty():
            self._free.get().shutdown()


@contextmanager
def workers(count: int) -> Iterator[Crew]:
    """Processes of this machine; they end with this one, however it ends."""
    _CONTEXT.set_forkserver_preload([__name__])
    crew = _Workers(count)
    with ThreadPoolExecutor(count) as threads:
        try:
            yield threads, crew.run
        except DiskFullError:  # those under way may be small enough
            threads.shutdown(wait=True, cancel_futures=True)
            raise
        except BaseException:
            crew.end()
            threads.shutdown(wait=True, cancel_futures=True)
            raise
        finally:
            crew.close()


def _process() -> ProcessPoolExecutor:
    """A pool of one process, which starts with its first point."""
    return ProcessPoolExecutor(1, mp_context=_CONTEXT, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """Have this process end when the sweep's does, and with it what it runs."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _work(name: str, backend: Backend, results: Path) -> Outcome:
    try:
        outcome = run_point(name, backend, results)
    except KeyboardInterrupt:  # a worker of a pool would go on with the next point
        os._exit(1)
    give_back_memory()
    return outcome


def give_back_memory() -> None:
    """Give the memory of a point's analysis back to the machine before the next.

    Figures are in reference cycles. And what Python frees, glibc keeps: of the 850 MB that a
    capture of 800 000 packets takes at six interfaces, 540 were still the process's while the
    next guest ran; without them it has 35.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)

"""Points of a sweep on other machines: Dask's workers, of this machine's twoway, over TLS.

A point is sent as its case, and comes back as a parcel (parcel.py) with the run and its metrics. A
worker first makes sure that it would run the same thing: its kernel, programs and tools decide
the bytes as much as the plan does. One that dies costs its points another try on another.
"""

import io
import logging
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from capture_analysis.errors import AnalysisError
from capture_analysis.scale import RETRIES

from twoway.backends.backend import Backend
from twoway.errors import DiskFullError, TwowayError, UsageError
from twoway.paths import ROOT, VM
from twoway.progress import say
from twoway.report.report import code_revision, revision
from twoway.runs.archive import finished_runs, unwrap, wrap
from twoway.runs.identity import identity
from twoway.runs.run import run_case
from twoway.spec.point import Case
from twoway.sweeps.sweep import Crew, analysed, run_point
from twoway.sweeps.workers import give_back_memory

# As the role `workers` names them, in --certificates.
_FILES = {"tls_ca_file": "ca.crt", "tls_client_cert": "client.crt", "tls_client_key": "client.key"}
# Points that wait for a worker at once: each holds a thread here, which sleeps.
_MOST_WAITING = 256
_PATIENCE_S = 10
# So many times as long without any worker, and no more are expected: services come back in seconds.
_PATIENCE = 6
# Dask forgets what was submitted while it is still telling others that the scheduler is gone.
_RECONNECT_S = 1
# Read when this module is: a worker that was not restarted has older code than its disk.
_CODE = " ".join((revision(), code_revision(ROOT / "twoway"), code_revision(VM)))


@dataclass(frozen=True)
class Sent:
    """What a worker returns: a parcel, or why there is none.

    Attributes:
        parcel: the run and its metrics.
        error: a sentence.
        unfit: the worker's address, where it is the worker that another point would fail on, too.
    """

    parcel: bytes = b""
    error: str = ""
    unfit: str = ""


@contextmanager
def lab_workers(scheduler: str, certificates: Path) -> Iterator[Crew]:
    """The workers of a scheduler.

    Args:
        scheduler: address of Dask's scheduler, such as tls://lab1:8786.
        certificates: folder with ca.crt, client.crt and client.key, for an address with tls.

    Raises: UsageError if it does not answer, has no workers or a certificate is not there.
    """
    from distributed import Client  # noqa: PLC0415 - takes a second

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # our own sentences say it
    try:
        client = Client(scheduler, timeout=_PATIENCE_S, security=_security(scheduler, certificates))
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"--scheduler {scheduler}: {error}") from error
    with client, ThreadPoolExecutor(_MOST_WAITING) as pool:
        _await_workers(client, scheduler)
        try:
            yield pool, partial(run_point, run=partial(_run_there, client, set()))
        except BaseException:
            client.close()  # those that wait for a point are told so
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _await_workers(client: Any, scheduler: str) -> None:
    if client.nthreads():
        return
    patience_s = _PATIENCE * _PATIENCE_S
    say(f"{scheduler} has no workers: {patience_s} s are left to one that starts ...")
    try:
        client.wait_for_workers(1, timeout=patience_s)
    except TimeoutError as error:
        raise UsageError(f"--scheduler {scheduler}: has no workers") from error


def _security(scheduler: str, certificates: Path) -> Any:
    from distributed.security import Security  # noqa: PLC0415 - takes a second

    if not scheduler.startswith("tls://"):
        return None
    paths = {setting: certificates / name for setting, name in _FILES.items()}
    for path in paths.values():
        if not path.is_file():
            raise UsageError(
                f"--certificates: {path}: not there", "playbooks/workers.yml makes certificates"
            )
    return Security(require_encryption=True, **{k: str(path) for k, path in paths.items()})


def wanted_there(case: Case, backend: Backend) -> str:
    """What a worker must run: the same bytes of the same code, as it was when it was loaded."""
    return f"{identity(case, backend)} {_CODE}"


def _run_there(client: Any, unfit: set[str], case: Case, backend: Backend, results: Path) -> Path:
    """As run_case, on some worker; called in a thread that waits for it.

    One that refuses is free at once, for the next point as well: it is asked last from then on.
    """
    work = (run_here, case, backend.name, wanted_there(case, backend))
    sent = _sent_back(client, work)
    while sent.unfit:
        if sent.unfit not in unfit:
            unfit.add(sent.unfit)
            say(sent.error, markup=False)
        fit = client.nthreads().keys() - unfit
        if not fit:
            break
        sent = _sent_back(client, work, workers=sorted(fit), allow_other_workers=True)
    if sent.error:
        raise TwowayError(sent.error)
    (folder,) = unwrap(io.BytesIO(sent.parcel), results)
    return folder


def _sent_back(client: Any, work: tuple[Any, ...], **where: Any) -> Sent:
    """What a worker returns, submitted anew if the scheduler is started anew meanwhile."""
    while True:
        try:
            return _awaited(client.submit(*work, pure=False, retries=RETRIES, **where), client)
        except CancelledError as error:
            if getattr(error, "reason", "") != "scheduler-connection-lost":
                raise TwowayError("interrupted") from error
            time.sleep(_RECONNECT_S)
        except TwowayError:
            raise
        except Exception as error:  # what Dask raises has no base of its own
            raise TwowayError(f"no worker could run it: {error}") from error


def _awaited(future: Any, client: Any) -> Sent:
    """A future's result, for which Dask would wait for ever if no worker were left."""
    alone = 0
    while alone < _PATIENCE:
        try:
            sent: Sent = future.result(timeout=_PATIENCE_S)
        except TimeoutError:
            alone = 0 if client.nthreads() else alone + 1
        else:
            return sent
    raise TwowayError(f"no worker has been there for {_PATIENCE * _PATIENCE_S} s")


def run_here(case: Case, backend_name: str, wanted: str) -> Sent:
    """What a worker does: run a case, analyse it, wrap it up.

    What is wrong with the case is a result: raised, Dask would try it again.
    """
    from twoway.backends.registry import find_backend  # noqa: PLC0415 - a worker's

    with tempfile.TemporaryDirectory(prefix="twoway-") as scratch:
        results = Path(scratch)
        try:
            backend = find_backend(backend_name)
            if wanted_there(case, backend) != wanted:
                return Sent(error=_another(), unfit=_worker().address)
            analysed(run_case(case, backend, results), case)
        except DiskFullError as error:
            return Sent(error=f"worker {_worker().name}: {error}", unfit=_worker().address)
        except (TwowayError, AnalysisError) as error:
            return Sent(error=f"worker {_worker().name}: {error}")
        parcel = io.BytesIO()
        wrap(results, finished_runs(results), parcel)
        give_back_memory()
        return Sent(parcel.getvalue())


def _another() -> str:
    return (
        f"worker {_worker().name} would run something else: another checkout, guest or version of "
        "a tool; deploy again"
    )


def _worker() -> Any:
    from distributed import get_worker  # noqa: PLC0415 - a worker has it

    return get_worker()

"""Running points of a sweep on a lab's hosts: Dask's workers, over TLS.

A point is sent as it was read and returns as an archive (runs/archive.py) with the run and its
metrics. A worker first compares its kernel, programs, tools and code with this machine's, because
they decide a run's bytes as much as the plan does. If a worker dies, its points are tried again on
another one.
"""

import io
import logging
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from capture_analysis.errors import AnalysisError
from capture_analysis.parallel_analysis import RETRIES

from twoway.backends.backend import Backend
from twoway.backends.registry import backend_for
from twoway.description.point import Point
from twoway.errors import DiskFullError, TwowayError, UsageError, in_a_sentence
from twoway.measure.revision import code_revision, revision
from twoway.messages import say
from twoway.paths import PACKAGE, VM
from twoway.runs.archive import finished_runs, pack_runs, unpack_runs
from twoway.runs.identity import identity_parts
from twoway.runs.run import run_experiment
from twoway.sweeps.sweep import Crew, measure_run, run_point
from twoway.sweeps.workers import give_back_memory

# Dask's settings, and the files in --certificates, with the names of the Ansible role `workers`.
_FILES = {"tls_ca_file": "ca.crt", "tls_client_cert": "client.crt", "tls_client_key": "client.key"}
_TLS = "tls://"
# Most points that wait for a worker at the same time: each occupies a sleeping thread here.
_MOST_WAITING = 256
# Interval of checks for workers, and the timeout of connecting at first.
_CHECK_S = 10
# Give up after 6 x 10 s without a worker or a scheduler: systemd restarts one in seconds, on a host
# that has time for it.
_MAX_IDLE_CHECKS = 6
_PATIENCE_S = _MAX_IDLE_CHECKS * _CHECK_S
# After the scheduler is lost, Dask still drops new submissions for a moment.
_RECONNECT_S = 1
# Computed on import: a worker that was not restarted runs older code than its disk holds.
_CODE = {
    "code.analysis": revision(),
    "code.twoway": code_revision(PACKAGE),
    "code.guest": code_revision(VM),
}


@dataclass(frozen=True)
class Sent:
    """A worker's answer: an archive, or an error.

    Attributes:
        archive: archive of the run and its metrics.
        error: a sentence; empty without an error.
        unfit: the worker's address if every other point would fail on it as well, else empty.
    """

    archive: bytes = b""
    error: str = ""
    unfit: str = ""


@contextmanager
def lab_workers(scheduler: str, certificates: Path) -> Iterator[Crew]:
    """Connect to a scheduler's workers.

    Args:
        scheduler: address of Dask's scheduler, such as tls://lab1:8786.
        certificates: folder with ca.crt, client.crt and client.key, for an address with tls.

    Raises: UsageError if the scheduler does not answer or has no workers, a certificate is missing,
        or an address other than this machine's is without TLS.
    """
    from distributed import Client  # noqa: PLC0415 - takes a second

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # we report these errors ourselves
    try:
        security = _security(scheduler, certificates)
        Client(scheduler, timeout=_CHECK_S, security=security).close()  # fails soon without one
        # The same timeout is that of connecting again, when the scheduler restarts.
        client = Client(scheduler, timeout=_PATIENCE_S, security=security)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"--scheduler {scheduler}: {error}", _hint(scheduler, error)) from error
    with client, ThreadPoolExecutor(_MOST_WAITING) as pool:
        _await_workers(client, scheduler)
        try:
            yield pool, partial(run_point, run=partial(_run_there, client, set()))
        except BaseException:
            client.close()  # cancels the futures that threads wait for
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _hint(scheduler: str, error: Exception) -> str:
    if not scheduler.startswith(_TLS):
        return f"does it speak TLS? then its address is {_TLS}..."
    if "certificate" in str(error):
        return "certificates hold the names and addresses of a host in workers.yml"
    return ""


def _await_workers(client: Any, scheduler: str) -> None:
    if client.nthreads():
        return
    say(f"{scheduler} has no workers: waiting {_PATIENCE_S} s for one to start ...")
    try:
        client.wait_for_workers(1, timeout=_PATIENCE_S)
    except TimeoutError as error:
        raise UsageError(f"--scheduler {scheduler}: has no workers") from error


def _security(scheduler: str, certificates: Path) -> Any:
    from distributed.security import Security  # noqa: PLC0415 - takes a second

    if not scheduler.startswith(_TLS):
        _refuse_elsewhere(scheduler)
        return None

    class Named(Security):
        """Certificates; a server's must contain the name by which the server was reached."""

        def get_connection_args(self, role: str) -> Any:
            arguments = super().get_connection_args(role)  # type: ignore[no-untyped-call]
            arguments["ssl_context"].check_hostname = True
            return arguments

    paths = {setting: certificates / name for setting, name in _FILES.items()}
    for path in paths.values():
        if not path.is_file():
            raise UsageError(
                f"--certificates: {path}: not there", "playbooks/workers.yml makes certificates"
            )
    settings = {setting: str(path) for setting, path in paths.items()}
    return Named(require_encryption=True, **settings)  # type: ignore[no-untyped-call]


def _refuse_elsewhere(scheduler: str) -> None:
    """Raise UsageError if a scheduler without TLS is not on this machine."""
    host = urlsplit(f"//{scheduler.rpartition('://')[2]}").hostname or ""
    with suppress(ValueError):
        if host == "localhost" or ip_address(host).is_loopback:
            return
    raise UsageError(
        f"--scheduler {scheduler:.200}: without TLS, anybody on the network could run code here",
        f"{_TLS}..., with the certificates that playbooks/workers.yml makes; without TLS only "
        "tcp://127.0.0.1:... and tcp://[::1]:...",
    )


def wanted_there(point: Point, backend: Backend) -> dict[str, str]:
    """List the parts that a worker must share: parts of the run's identity, and loaded code."""
    return {**identity_parts(point, backend_for(point, backend)), **_CODE}


def _run_there(client: Any, unfit: set[str], point: Point, backend: Backend, results: Path) -> Path:
    """Run a point on a worker and unpack the run; the thread waits.

    A worker that refuses a point is free at once, and would get and refuse the next one: from then
    on points go to other workers if possible.
    """
    work = (run_here, point, backend.name, wanted_there(point, backend))
    sent = _sent_back(client, work)
    while sent.unfit:
        if sent.unfit not in unfit:
            unfit.add(sent.unfit)
            say(sent.error, wrong=True)
        fit = _workers(client) - unfit
        if not fit:
            break
        sent = _sent_back(client, work, workers=sorted(fit), allow_other_workers=True)
    if sent.error:
        raise TwowayError(sent.error)
    (folder,) = unpack_runs(io.BytesIO(sent.archive), results, pages=True)
    return folder


def _sent_back(client: Any, work: tuple[Any, ...], **where: Any) -> Sent:
    """Submit work and wait; submit again if the scheduler restarts."""
    while True:
        try:
            return _awaited(client.submit(*work, pure=False, retries=RETRIES, **where), client)
        except CancelledError as error:
            if getattr(error, "reason", "") != "scheduler-connection-lost":
                raise TwowayError("interrupted") from error
            time.sleep(_RECONNECT_S)
        except TwowayError:
            raise
        except Exception as error:  # Dask's exceptions have no common base
            raise TwowayError(f"no worker was able to run it: {error}") from error


def _awaited(future: Any, client: Any) -> Sent:
    """Wait for a future's result; give up if no worker is left.

    Dask would wait forever.
    """
    idle_checks = 0
    while idle_checks < _MAX_IDLE_CHECKS:
        try:
            answer = future.result(timeout=_CHECK_S)
        except TimeoutError:
            idle_checks = 0 if _workers(client) else idle_checks + 1
        else:
            if isinstance(answer, Sent):
                return answer
            raise TwowayError(f"a worker's answer is no run: {answer!r:.200}")
    raise TwowayError(f"no worker for {_PATIENCE_S} s")


def _workers(client: Any) -> set[str]:
    """Return the workers' addresses: none if the connection ends before the scheduler answers."""
    try:
        return set(client.nthreads())
    except OSError:
        return set()


def run_here(point: Point, backend_name: str, wanted: Mapping[str, str]) -> Sent:
    """Run a point on this worker, analyse it and pack it into an archive.

    Errors of the point are returned: if they were raised, Dask would run the point again.
    """
    from twoway.backends.registry import find_backend  # noqa: PLC0415 - a worker's

    with tempfile.TemporaryDirectory(prefix="twoway-") as scratch:
        results = Path(scratch)
        try:
            backend = find_backend(backend_name)
            if differing := _differing(wanted, wanted_there(point, backend)):
                what = (
                    f"worker {_worker().name} would run something else: {differing}; deploy again"
                )
                return Sent(error=what, unfit=_worker().address)
            with in_a_sentence(point.id, AnalysisError):
                measure_run(run_experiment(point, backend, results))
        except DiskFullError as error:
            return Sent(error=f"worker {_worker().name}: {error}", unfit=_worker().address)
        except (TwowayError, AnalysisError) as error:
            return Sent(error=f"worker {_worker().name}: {error}")
        archive = io.BytesIO()
        pack_runs(results, finished_runs(results), archive)
        give_back_memory()
        return Sent(archive.getvalue())


def _differing(wanted: Mapping[str, str], own: Mapping[str, str]) -> str:
    """List the parts that differ from the wanted ones, with both values."""
    return ", ".join(
        f"{name} {own.get(name, 'missing'):.60}, not {wanted.get(name, 'missing'):.60}"
        for name in sorted({*wanted, *own})
        if own.get(name) != wanted.get(name)
    )


def _worker() -> Any:
    from distributed import get_worker  # noqa: PLC0415 - a worker has it

    return get_worker()

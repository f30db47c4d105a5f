"""Run the command `twoway` in a fork of the tests' process, with modules already loaded.

Loading them takes a third of a second of processor time, more than most commands, and seconds for
a sweep's workers, so a sweep's points run in the fork itself. Behaviour that needs a fresh process
(the environment, limits, standard streams) or workers is tested by `running.twoway`.
"""

import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Never

from support.running import ROOT
from twoway import cli
from twoway.sweeps import workers
from twoway.sweeps.sweep import run_point


def twoway(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run the command as a process of its own, and keep its output."""
    argv = ["twoway", *map(str, arguments)]
    with TemporaryFile() as out, TemporaryFile() as err:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            child = os.fork()  # Python 3.12 and newer warn: xdist's thread is not in the child
        if not child:
            _become(argv, cwd, out.fileno(), err.fileno())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode())
    return subprocess.CompletedProcess(argv, status, *texts)


def _become(argv: list[str], cwd: Path, out: int, err: int) -> Never:
    status = 1
    try:
        for ours, standard in enumerate((os.open(os.devnull, os.O_RDONLY), out, err)):
            os.dup2(standard, ours)
        sys.stdout, sys.stderr = (TextIOWrapper(os.fdopen(fd, "wb")) for fd in (1, 2))
        sys.argv = argv
        os.chdir(cwd)
        workers.workers = partial(_workers, workers.workers)
        status = cli.main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - as Python ends
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _workers(real: Callable[..., Any], count: int, task: Any = run_point) -> Any:
    return in_this_process(count, task) if task is run_point else real(count, task)


@contextmanager
def in_this_process(_: int, task: Any) -> Iterator[Any]:
    """Stand in for `workers.workers`: a thread instead of new processes."""
    with ThreadPoolExecutor(1) as thread:
        yield thread, task

"""Kernels in the cache built from other sources or configurations."""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from twoway.guest import smp_kernel
from twoway.guest.cache import kernel_folder, lock_if_free
from twoway.guest.source import FETCHED, Flavour, fetched_source
from twoway.paths import cache


def old_kernels() -> Iterator[tuple[Path, str]]:
    """Find complete kernels of other checkouts or versions, which may need them again.

    Yields: a kernel's folder, and the reason why it can be removed.
    Raises: UsageError without a source of kernels, because then it is unknown which are in use.
    """
    flavours = [each for each in get_args(Flavour) if each not in FETCHED or fetched_source(each)]
    used = {kernel_folder(flavour) for flavour in flavours}
    used |= {smp_kernel.kernel_folder(checkers) for checkers in get_args(smp_kernel.Checkers)}
    kernels = cache() / "kernel"
    yield from ((path, "half removed") for path in sorted(kernels.glob(".removing-*")))
    for facts in sorted(kernels.glob("[0-9a-f]*/guest.json")):
        if facts.parent not in used:
            yield facts.parent, "kernel of another version, configuration or source"
    for history in sorted((cache() / "history").glob("*")):
        with lock_if_free(f"history-{history.name}") as free:
            if free:
                yield history, "checkout and build of `twoway bisect`"

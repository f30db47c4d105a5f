"""The limits of a shell that twoway needs."""

import resource

from twoway.errors import UsageError

# kalampoukas-5.2 runs with 200 open files, and its guest dies with 128. numpy ends the process if
# it cannot have the address space for its threads.
_LEAST_FILES = 256
_LEAST_MIB = 512


def refuse_small_limits() -> None:
    """Raise the limit of open files as far as allowed.

    Raises: UsageError if the limits leave too few, or too little memory.
    """
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most != resource.RLIM_INFINITY and most < _LEAST_FILES:
        raise UsageError(f"ulimit -n: must be at least {_LEAST_FILES} open files, got {most}")
    space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if space != resource.RLIM_INFINITY and space >> 20 < _LEAST_MIB:
        raise UsageError(f"ulimit -v: must be at least {_LEAST_MIB << 10} kB, got {space >> 10}")

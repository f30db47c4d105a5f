"""The origin of a report: files and versions."""

import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

_PACKAGES = ("capture-analysis", "numpy")


def described_file(path: Path) -> dict[str, str]:
    """Describe a file: name, path, size, time of change.

    Raises: OSError if the file is missing.
    """
    status = path.stat()
    changed = datetime.fromtimestamp(status.st_mtime, tz=UTC)
    return {
        "name": path.name,
        "path": str(path),
        "size": f"{status.st_size:,} bytes",
        "changed": changed.strftime("%Y-%m-%d %H:%M:%S UTC"),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages used."""
    return {name: metadata.version(name) for name in _PACKAGES} | {
        "Python": platform.python_version()
    }


def time_of_writing() -> str:
    """Return the time of writing, in UTC."""
    return datetime.now(tz=UTC).strftime("%Y-%m-%d %H:%M UTC")

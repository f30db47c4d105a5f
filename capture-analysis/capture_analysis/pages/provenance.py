"""Where a report comes from: files and versions."""

import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

_PACKAGES = ("capture-analysis", "numpy", "plotly")


def described_file(path: Path) -> dict[str, str]:
    """A file's name, path, size and time of change. Raises: OSError if it is not there."""
    status = path.stat()
    changed = datetime.fromtimestamp(status.st_mtime, tz=UTC)
    return {
        "name": path.name,
        "path": str(path),
        "size": f"{status.st_size:,} bytes",
        "changed": changed.strftime("%Y-%m-%d %H:%M:%S UTC"),
    }


def versions() -> dict[str, str]:
    """Of what computes and draws."""
    return {name: metadata.version(name) for name in _PACKAGES} | {
        "Python": platform.python_version()
    }


def now() -> str:
    """The time of writing."""
    return datetime.now(tz=UTC).strftime("%Y-%m-%d %H:%M UTC")

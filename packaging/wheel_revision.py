"""Put the checkout's revision into the wheel, where manifests of runs read it.

For pip, the wheel also requires capture-analysis from the checkout: no index has that package, and
pip, unlike uv, does not read `tool.uv.sources`.
"""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class RevisionHook(BuildHookInterface[Any]):
    """Adds the file that `git_revision` of twoway/runs/manifest.py reads."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the revision to a file of its own; an editable wheel has none."""
        analysis = Path(self.root) / "capture-analysis"
        if "PIP_BUILD_TRACKER" in os.environ and analysis.is_dir():  # pip sets it, uv does not
            needed = self.metadata.core.dependencies
            needed[:] = [_from_folder(each, analysis) for each in needed]
        if version == "editable":
            return
        self.scratch = tempfile.TemporaryDirectory()
        revision = Path(self.scratch.name) / "REVISION"
        revision.write_text(f"{_revision(Path(self.root))}\n")
        build_data["force_include"][str(revision)] = "twoway/share/REVISION"


def _from_folder(requirement: str, folder: Path) -> str:
    """Add a package's folder to the requirement of this package; return others unchanged."""
    return requirement + f" @ {folder.as_uri()}" * requirement.startswith(folder.name)


def _revision(root: Path) -> str:
    """Read the revision of a checkout; for an unpacked archive it is "unknown"."""
    if not (root / ".git").exists():
        return "unknown"
    argv = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()

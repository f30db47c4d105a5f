"""Put the checkout's revision into the wheel, where manifests of runs read it."""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class RevisionHook(BuildHookInterface[Any]):
    """Adds the file that `git_revision` of twoway/runs/manifest.py reads."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the revision to a file of its own; an editable wheel has none."""
        if version == "editable":
            return
        self.scratch = tempfile.TemporaryDirectory()
        revision = Path(self.scratch.name) / "REVISION"
        revision.write_text(f"{_revision(Path(self.root))}\n")
        build_data["force_include"][str(revision)] = "twoway/share/REVISION"


def _revision(root: Path) -> str:
    """Read the revision of a checkout; for an unpacked archive it is "unknown"."""
    if not (root / ".git").exists():
        return "unknown"
    argv = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()

"""The archives for lab hosts."""

import shutil
from pathlib import Path

import pytest
from support.running import ROOT

from twoway.lab import bundles


@pytest.mark.long
def test_an_environment_has_the_code_of_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an edit of capture-analysis the next environment contains the edited file."""
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "capture-analysis", checkout / "capture-analysis")
    for name in ("pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, checkout / name)
    monkeypatch.setattr(bundles, "ROOT", checkout)
    edited = checkout / "capture-analysis/capture_analysis/errors.py"
    for remark in ("", "# edited\n"):
        edited.write_text(edited.read_text() + remark)
        bundles._make_environment(tmp_path / "environment")
        (installed,) = tmp_path.glob("environment/lib/*/site-packages/capture_analysis/errors.py")
        assert installed.read_text() == edited.read_text()
        shutil.rmtree(tmp_path / "environment")

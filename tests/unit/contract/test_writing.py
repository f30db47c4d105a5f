"""Files are written whole or not at all."""

import json
from pathlib import Path

import pytest

from twoway.contract.writing import write_json


def test_a_document_is_whole(tmp_path: Path) -> None:
    """A JSON file has the written content, and no other file is left."""
    document = {"pass": True, "value": 0.5, "none": None}
    write_json(tmp_path / "metrics.json", document)
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.json"]
    assert json.loads((tmp_path / "metrics.json").read_text()) == document


def test_what_is_not_json_is_refused(tmp_path: Path) -> None:
    """A number that JSON cannot express is refused, and an earlier file survives."""
    path = tmp_path / "metrics.json"
    write_json(path, {"pass": True})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"value": float("nan")})
    assert [each.name for each in tmp_path.iterdir()] == ["metrics.json"]
    assert json.loads(path.read_text()) == {"pass": True}

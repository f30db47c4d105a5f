"""A trace proves that the run with the probe is the run."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zstandard import compress

from twoway.errors import RunError
from twoway.sweeps.trace import _Table, equal_captures


def test_a_probe_that_changes_a_byte_has_no_answer(tmp_path: Path) -> None:
    """Equal captures have their SHA-256; one other byte in one of them is an error."""
    runs = tmp_path / "one", tmp_path / "other"
    for run in runs:
        (run / "pcap").mkdir(parents=True)
        (run / "pcap/h1-eth0.pcap.zst").write_bytes(compress(b"packets"))
    digest = sha256(b"packets").hexdigest()
    assert equal_captures(*runs, ["h1-eth0"]) == {"h1-eth0": digest}
    (runs[1] / "pcap/h1-eth0.pcap.zst").write_bytes(compress(b"pockets"))
    with pytest.raises(RunError, match=r"h1-eth0: the run with the probe has other packets"):
        equal_captures(*runs, ["h1-eth0"])


def test_a_message_on_no_interface_is_no_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel also frees what no network carries, such as a message of netlink."""
    table = object.__new__(_Table)
    columns = {"interface": [-1, 0, -1], "source": [0, 0, 80], "dest": [0, 0, 0]}
    table._columns = {name: np.array(values) for name, values in columns.items()}
    monkeypatch.setattr(_Table, "_moment", lambda _, row: row["source"])
    found: list[Any] = [*table.moments()]
    assert found == [0, 80]

"""The trace event dtm:dtm_reallocation of the kernel.

    with Events() as events:
        run("tc qdisc change dev d0 root dtm slots 5")
        assert events.take()[0]["to"] == "5"

It uses a buffer of its own (an instance of tracefs), which is removed afterwards.
"""

import os
import subprocess
from pathlib import Path
from typing import Self

TRACING = Path("/sys/kernel/tracing")
_MARK = "dtm_reallocation: "


def mount_tracing() -> None:
    """Mount tracefs, unless it is there."""
    if not (TRACING / "instances").exists():
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACING], check=True)


class Events:
    """The events of all network namespaces since the start, or since the last call of take()."""

    def __init__(self) -> None:
        self._folder = TRACING / f"instances/test-{os.getpid()}"
        self._folder.mkdir()
        self._pipe = os.open(self._folder / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        (self._folder / "events/dtm/dtm_reallocation/enable").write_text("1")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._pipe)
        self._folder.rmdir()

    def take(self) -> list[dict[str, str]]:
        """Return the fields of each event, as words."""
        text = b""
        try:
            while True:
                text += os.read(self._pipe, 1 << 16)
        except BlockingIOError:
            lines = text.decode().splitlines()
        return [
            dict(word.split("=") for word in line.partition(_MARK)[2].split())
            for line in lines
            if _MARK in line
        ]

"""Running a program for several batches of lines, loaded once (fork_server.c)."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
from contextlib import suppress

TYPE_CHECKING = False  # `typing` takes long to load
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LIBRARY = "/mnt/bin/fork_server.so"


class ForkServer:
    """A loaded program that becomes a new process for each batch."""

    def __init__(self, argv: Sequence[str]) -> None:
        """Load a program that reads its standard input: [env NAME=VALUE...] PROGRAM ARGUMENT..."""
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._input, *self._outputs = (os.memfd_create(each) for each in ("in", "out", "err"))
        for output in self._outputs:  # for many processes, each of which begins with an empty one
            fcntl.fcntl(output, fcntl.F_SETFL, os.O_APPEND)
        self._name = next(word for word in argv if word != "env" and "=" not in word)
        settings = {
            "LD_PRELOAD": LIBRARY,
            "FORK_SERVER": self._name,
            "FORK_SERVER_INPUT": str(self._input),
        }
        with theirs:
            self._process = subprocess.Popen(  # kept, so that it is not waited for
                argv,
                env={**os.environ, **settings},
                stdin=theirs.fileno(),
                stdout=self._outputs[0],
                stderr=self._outputs[1],
                pass_fds=[self._input],
            )

    def run(self, namespace: Path, lines: str) -> tuple[int, str, str]:
        """Run the program in a network namespace, given by its file.

        Returns: its exit code, negative for a signal; its standard output, and standard error.
        Raises: OSError if it cannot be loaded.
        """
        for file in (self._input, *self._outputs):
            os.ftruncate(file, 0)
        os.pwrite(self._input, lines.encode(), 0)
        os.lseek(self._input, 0, os.SEEK_SET)
        with suppress(BrokenPipeError):
            self._requests.send(os.fsencode(namespace))
        status = self._requests.recv(4)
        out, err = (os.pread(each, os.fstat(each).st_size, 0).decode() for each in self._outputs)
        if not status:
            raise OSError(f"{self._name}: cannot be loaded: {err}")
        return os.waitstatus_to_exitcode(*struct.unpack("i", status)), out, err

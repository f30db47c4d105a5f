"""Compressing the captures of a finished run.

Headers of a few connections repeat: level 1 makes captures 4 to 10 times smaller, those of all five
papers 6.9 times, at 700 MB/s; levels up to 9 are hardly better (zstd 1.5.7).
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event

from zstandard import ZstdCompressor

from twoway.contract.files import open_run_file

_LEVEL = 1
# Between two blocks the compression can end.
_BLOCK_BYTES = 1 << 20


def packed_name(interface: str) -> str:
    """Return the path of an interface's compressed capture in a run's folder."""
    return f"pcap/{interface}.pcap.zst"


def pack(folder: Path) -> None:
    """Replace each capture of a run that has ended by its compressed form."""
    ended = Event()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        try:
            for _ in pool.map(partial(_pack, folder, ended), sorted(folder.glob("pcap/*.pcap"))):
                pass
        except BaseException:  # Ctrl-C, or a full disk
            ended.set()
            pool.shutdown(cancel_futures=True)
            raise


def _pack(folder: Path, ended: Event, path: Path) -> None:
    compressor = ZstdCompressor(level=_LEVEL, write_checksum=True)
    with (
        open_run_file(folder, f"pcap/{path.name}") as plain,
        open_run_file(folder, packed_name(path.stem), new=True) as packed,
    ):
        size = os.fstat(plain.fileno()).st_size
        with compressor.stream_writer(packed, size=size, closefd=False) as writer:
            while block := plain.read(_BLOCK_BYTES):
                if ended.is_set():
                    raise InterruptedError
                writer.write(block)
    path.unlink()

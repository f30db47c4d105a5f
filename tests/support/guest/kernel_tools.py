"""Parts of the kernel's source that no build unpacks: tdc, YNL and the schemas of its specs."""

import shutil
import subprocess
from pathlib import Path

from twoway.guest.cache import build_lock
from twoway.guest.seals import content_hash
from twoway.guest.source import KernelSource, kernel_source
from twoway.paths import cache

TDC = "tools/testing/selftests/tc-testing"
YNL = "tools/net/ynl"
SPECS = "Documentation/netlink"


def kernel_tools() -> Path:
    """Return a folder with TDC, YNL and SPECS of the guest's kernel; unpacked once, in some 20 s.

    Raises: UsageError without a source.
    """
    source = kernel_source()
    folder = cache() / "kernel-tools" / content_hash(source.identity.encode())
    with build_lock("kernel-tools"):
        if not folder.is_dir():
            scratch = folder.with_name(f".unpacking-{folder.name}")
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
            _unpack(source, scratch)
            scratch.rename(folder)
    return folder


def _unpack(source: KernelSource, folder: Path) -> None:
    assert source.path is not None
    if source.path.is_dir():
        for part in (TDC, YNL, SPECS):
            shutil.copytree(source.path / part, folder / part, symlinks=True)
        return
    top = source.path.name.partition(".tar")[0]
    parts = [f"{top}/{part}" for part in (TDC, YNL, SPECS)]
    options = ["--strip-components=1", "--exclude=*/tc-tests/*"]
    subprocess.run(["tar", "-xf", source.path, *options, "-C", folder, *parts], check=True)

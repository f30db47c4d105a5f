"""A distribution's own kernel for `qemu`: downloaded, not installed.

apt downloads and checks the packages: the kernel image, and the headers for building our modules
with Kbuild. They stay in the cache, so that later runs use the same kernel.
"""

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from twoway.contract.writing import write_json
from twoway.guest.cache import build_lock
from twoway.guest.kernel import BuildError, call
from twoway.guest.programs import BOOTED_PROGRAMS, BOOTED_SOURCES, build_programs, sources_key
from twoway.paths import cache
from twoway.progress import Steps

PACKAGE = "linux-image-amd64"
# The modules that the kernel needs to reach its root file system; modprobe finds the others there.
_BOOT_MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
_DIRECTORY, _EXECUTABLE, _FILE = 0o040755, 0o100755, 0o100644


@dataclass(frozen=True)
class StockKernel:
    """A kernel as packaged, with our modules and programs.

    Attributes:
        image: the file that QEMU boots.
        modules: the folder with the kernel's own modules, by release.
        programs: folder with initrd, init, stream, observe and our kernel modules.
        release: kernel release, as uname -r prints it.
        package: name and version of the image's package.
        key: identifies package, modules and programs.
    """

    image: Path
    modules: Path
    programs: Path
    release: str
    package: str
    key: str


def find_stock() -> StockKernel | None:
    """Find kernel and programs in the cache; None if missing or changed."""
    root = _folder() / "root"
    try:
        facts = json.loads((_folder() / "stock.json").read_text())
    except OSError:
        return None
    programs = cache() / "programs" / _key(facts["package"])
    if not programs.is_dir():
        return None
    release = facts["release"]
    return StockKernel(
        image=root / f"boot/vmlinuz-{release}",
        modules=root / "lib/modules",
        programs=programs,
        release=release,
        package=facts["package"],
        key=programs.name,
    )


def build_stock(steps: Steps) -> StockKernel:
    """Download the kernel and build the parts that are not in the cache.

    Raises: BuildError with the end of the failed program's output.
    """
    with build_lock("stock"):
        facts = _folder() / "stock.json"
        if not facts.is_file():
            _fetch(_folder(), steps)
        known = json.loads(facts.read_text())
        programs = cache() / "programs" / _key(known["package"])
        if not programs.is_dir():
            headers = _folder() / f"root/usr/src/linux-headers-{known['release']}"
            kbuild = ["-C", str(headers), "KCFLAGS=-Werror"]
            build_programs(programs, BOOTED_PROGRAMS, kbuild, steps, PACKAGE)
    stock = find_stock()
    assert stock is not None
    return stock


def initramfs(stock: StockKernel) -> bytes:
    """Build the initramfs: a cpio archive ("newc") for the program boot.

    Modules are numbered in the order in which boot loads them.
    """
    base = stock.modules / stock.release
    boot = (stock.programs / "boot").read_bytes()
    entries = [("modules", _DIRECTORY, b""), ("init", _EXECUTABLE, boot)]
    for number, path in enumerate(_in_order(base)):
        entries.append((f"modules/{number:02}-{path.name}", _FILE, path.read_bytes()))
    archive = bytearray()
    for number, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], start=1):
        # inode, mode, uid, gid, links, mtime, size, four device numbers, length of name, checksum
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        archive += b"070701" + b"".join(b"%08X" % field for field in fields)
        archive += _padded(archive, name.encode() + b"\0")
        archive += _padded(archive, data)
    return bytes(archive)


def _padded(archive: bytearray, data: bytes) -> bytes:
    """Pad data so that the archive's length becomes a multiple of four bytes."""
    return data + bytes(-(len(archive) + len(data)) % 4)


def _in_order(base: Path) -> list[Path]:
    """List the modules that boot loads, each after its dependencies."""
    needs: dict[str, list[str]] = {}
    by_name: dict[str, str] = {}
    for line in (base / "modules.dep").read_text().splitlines():
        path, _, needed = line.partition(":")
        needs[path] = needed.split()
        by_name[Path(path).name.split(".")[0].replace("-", "_")] = path
    ordered: dict[str, None] = {}
    for name in _BOOT_MODULES:
        if name in by_name:  # otherwise the module is built in
            path = by_name[name]
            ordered |= dict.fromkeys([*reversed(needs[path]), path])
    return [base / path for path in ordered]


def _folder() -> Path:
    return cache() / "stock" / PACKAGE


def _key(package: str) -> str:
    return sources_key(package.encode(), programs=BOOTED_SOURCES)


def _fetch(folder: Path, steps: Steps) -> None:
    """Download and unpack the packages.

    stock.json is written last and marks them as complete.
    """
    image = next(_depends(PACKAGE, r"linux-image-\d.*"), "")
    if not image:
        raise BuildError(f"apt knows no {PACKAGE}: its lists are missing or this is not Debian")
    release = image.removeprefix("linux-image-")
    headers = f"linux-headers-{release}"
    packages = [image, headers, *_depends(headers, r"linux-(headers|kbuild)-.*")]
    steps.begin(f"{image}: fetch")
    root = folder / "root"
    call(["rm", "-rf", str(folder)])
    root.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        call(["apt-get", "download", *packages], cwd=Path(scratch))
        for package in Path(scratch).glob("*.deb"):
            call(["dpkg", "-x", str(package), str(root)])
    makefile = root / f"usr/src/{headers}/Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{root}/usr/src/"))
    call(["/sbin/depmod", "-b", str(root), release])
    version = _apt_cache("show", "--no-all-versions", image, find=r"^Version: (.*)$")
    write_json(folder / "stock.json", {"release": release, "package": f"{image} {next(version)}"})


def _depends(package: str, wanted: str) -> Iterator[str]:
    return _apt_cache("depends", package, find=rf"^ *Depends: ({wanted})$")


def _apt_cache(*words: str, find: str) -> Iterator[str]:
    """Search apt-cache's output; yield the text of the pattern's first group."""
    done = subprocess.run(["apt-cache", *words], capture_output=True, text=True, check=False)
    return (match[1] for match in re.finditer(find, done.stdout, re.MULTILINE))

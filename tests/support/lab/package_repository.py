"""A Debian package that a lab host lacks, and a local repository that has it."""

import hashlib
import shutil
import subprocess
from pathlib import Path

# Shell commands: remove PACKAGE, and let apt use only this repository.
WITHOUT = """
dpkg --purge {package} > /dev/null
rm -rf /etc/apt/sources.list.d /etc/apt/preferences.d
echo "deb [trusted=yes] file:/run/lab/repository ./" > /etc/apt/sources.list
apt-get update -qq
"""


def offer(package: str, folder: Path) -> None:
    """Pack an installed package from its files into a repository in a folder."""
    content, packed = folder / "content", folder / f"{package}.deb"
    for name in _said("dpkg-query", "-L", package).splitlines():
        path, target = Path(name), content / name.lstrip("/")
        if not path.is_dir() and (path.is_symlink() or path.is_file()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target, follow_symlinks=False)
    wanted = ("Package", "Version", "Architecture", "Maintainer", "Depends", "Description")
    fields = "".join(f"{name}: ${{{name}}}\\n" for name in wanted)
    control = _said("dpkg-query", "-W", "-f", fields, package)
    (content / "DEBIAN").mkdir()
    (content / "DEBIAN/control").write_text(control)
    _said("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(content), str(packed))
    shutil.rmtree(content)
    digest = hashlib.sha256(packed.read_bytes()).hexdigest()
    described = f"Filename: ./{packed.name}\nSize: {packed.stat().st_size}\nSHA256: {digest}\n"
    (folder / "Packages").write_text(control + described)


def offer_dependent(package: str, folder: Path) -> None:
    """Pack needs-PACKAGE, a package that only depends on another."""
    content = folder / "content"
    (content / "DEBIAN").mkdir(parents=True)
    name = f"needs-{package}"
    (content / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: lab <lab@localhost>\n"
        f"Depends: {package}\nDescription: needs {package}\n"
    )
    _said("dpkg-deb", "--root-owner-group", "--build", str(content), str(folder / f"{name}.deb"))
    shutil.rmtree(content)


def _said(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

"""The backend `native` names the reasons for refusing a machine; runs are tested in the lab."""

import lzma
import os
from pathlib import Path

import pytest

from twoway.backends import native
from twoway.errors import UsageError


def test_only_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without root the refusal names the reason for needing root."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="needs root"):
        native.make_native()


def test_missing_options_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each option that the kernel lacks is named with its purpose, and no other option is."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    have = set(native.NEEDED) - {"CONFIG_NET_SCH_NETEM", "CONFIG_VETH"}
    monkeypatch.setattr(native, "kernel_config", lambda: have)
    with pytest.raises(UsageError) as error:
        native.make_native()
    assert "no CONFIG_VETH (links), no CONFIG_NET_SCH_NETEM (rates and delays)" in str(error.value)
    assert "CONFIG_PACKET" not in str(error.value)


def test_missing_headers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A kernel without headers is refused with the package that has them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(native, "kernel_config", lambda: set(native.NEEDED))
    monkeypatch.setattr(native, "HEADERS", str(tmp_path / "no-such-{release}"))
    with pytest.raises(UsageError, match="no headers for kernel") as error:
        native.make_native()
    assert f"linux-headers-{os.uname().release}" in error.value.hint


def test_this_kernel_says_what_it_has() -> None:
    """Options that are on are read from the running kernel's configuration; others are not."""
    try:
        config = native.kernel_config()
    except UsageError as error:
        pytest.skip(str(error))
    assert "CONFIG_NET" in config
    assert all(name.startswith("CONFIG_") and "=" not in name for name in config)


def test_modules_of_dkms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Modules from DKMS, compressed or not, are used if all are of this checkout's source."""
    sources, installed = tmp_path / "sources", tmp_path / "6.1/dkms"
    sources.mkdir()
    installed.mkdir(parents=True)
    monkeypatch.setattr(native, "KERNEL_MODULES", sources)
    monkeypatch.setattr(native, "DKMS", str(tmp_path / "{release}/dkms"))
    (sources / "Kbuild").write_text("obj-m += first.o\nobj-m += second.o\nobj-$(X) += tests/\n")
    (installed / "first.ko").write_bytes(b"\0revision=ours\0signature")
    (installed / "second.ko.xz").write_bytes(lzma.compress(b"\0revision=ours\0"))
    assert native.modules_of_dkms("6.1") == {}  # not deployed: its sources have no revision
    (sources / "REVISION").write_text("ours\n")
    assert native.modules_of_dkms("6.1") == {
        "first.ko": b"\0revision=ours\0signature",
        "second.ko": b"\0revision=ours\0",
    }
    assert native.modules_of_dkms("6.12") == {}
    (sources / "REVISION").write_text("others\n")
    assert native.modules_of_dkms("6.1") == {}

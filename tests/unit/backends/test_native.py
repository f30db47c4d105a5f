"""The backends `native` and `qemu` without a run: refusals, files, machine, and cache."""

import lzma
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from twoway.backends import native, qemu
from twoway.contract.plan import PLAN, Plan
from twoway.errors import RunError, UsageError
from twoway.guest import stock_kernel
from twoway.guest.stock_kernel import StockKernel

# The backend `native` names the reasons for refusing a machine; runs are tested in the lab.


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


# The backend `qemu` without booting: its files, its machine, and its cache.

RELEASE = "6.1.0-0-amd64"
NEEDS = {
    "kernel/drivers/virtio/virtio_pci.ko": ["kernel/virtio_ring.ko", "kernel/virtio.ko"],
    "kernel/net/9p/9pnet_virtio.ko": ["kernel/net/9p/9pnet.ko", "kernel/virtio.ko"],
    "kernel/fs/9p/9p.ko": ["kernel/net/9p/9pnet.ko"],
    "kernel/fs/overlay.ko": [],
    "kernel/net/9p/9pnet.ko": [],
    "kernel/virtio.ko": [],
    "kernel/virtio_ring.ko": [],
}


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StockKernel:
    """Make a kernel package with empty modules, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    base = tmp_path / "lib/modules" / RELEASE
    for name in NEEDS:
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(name)
    (base / "modules.dep").write_text(
        "".join(f"{name}: {' '.join(needed)}\n" for name, needed in NEEDS.items())
    )
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "boot").write_bytes(b"first process")
    image = tmp_path / "boot/vmlinuz"
    image.parent.mkdir()
    image.touch()
    package = f"linux-image-{RELEASE} 6.1-1"
    return StockKernel(image, base.parent, programs, RELEASE, package, "0" * 16)


def entries(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """Return names and contents of a cpio archive, parsed by the format's description."""
    at = 0
    while True:
        fields = [int(archive[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        name = archive[at + 110 : at + 110 + fields[11] - 1].decode()
        start = (at + 110 + fields[11] + 3) // 4 * 4
        if name == "TRAILER!!!":
            return
        yield name, archive[start : start + fields[6]]
        at = (start + fields[6] + 3) // 4 * 4


def test_initramfs_orders_modules_by_need(kernel: StockKernel) -> None:
    """The archive holds boot as init, and each module after its dependencies."""
    found = dict(entries(stock_kernel.initramfs(kernel)))
    assert found["init"] == b"first process"
    modules = [content.decode() for name, content in found.items() if "/" in name]
    assert set(modules) == set(NEEDS)
    for module in modules:
        assert all(modules.index(needed) < modules.index(module) for needed in NEEDS[module])


def test_kvm_is_tried_once(
    kernel: StockKernel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The result of trying KVM is printed, remembered in an empty cache, and not tried again."""
    tried = []

    def why(kernel: StockKernel) -> str:
        tried.append(kernel)
        return "it hangs"

    monkeypatch.setattr(qemu, "why_not_kvm", why)
    monkeypatch.setattr(qemu, "version", lambda: "QEMU 0")
    assert [qemu.best_accelerator(kernel) for _ in range(2)] == ["icount", "icount"]
    assert len(tried) == 1
    assert capsys.readouterr().err.count("it hangs") == 1


def test_kvm_that_hangs_is_none(kernel: StockKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a boot with KVM does not end in time, twoway runs without KVM and reports no error."""

    def hang(*_: Any, **__: Any) -> None:
        raise RunError("the guest's clock has not moved")

    monkeypatch.setattr(os, "access", lambda *_: True)
    monkeypatch.setattr(qemu, "run", hang)
    monkeypatch.setattr(qemu, "_KVM_BOOT_S", 0.0)
    assert "has not booted in 0 s" in qemu.why_not_kvm(kernel)


@pytest.mark.parametrize("accelerator", qemu.ACCELERATORS)
def test_nothing_but_the_run_is_writable(
    kernel: StockKernel, tmp_path: Path, accelerator: qemu.Accelerator
) -> None:
    """QEMU sees a read-only host and the run's folder, and has no network."""
    Plan(memory_mib=100).write(tmp_path / PLAN)
    argv = qemu.command(kernel, accelerator, tmp_path, ["/bin/true"])
    writable = [argv[i + 1] for i, word in enumerate(argv) if word == "--bind"]
    assert writable == [str(tmp_path)]
    assert {"--unshare-net", "--unshare-pid", "--add-seccomp-fd"} <= set(argv)
    assert ("/dev/kvm" in argv) == (accelerator == "kvm")
    shares = [word for word in argv if word.startswith("local,")]
    assert [("readonly=on" in share, "path=/mnt/run," in share) for share in shares] == [
        (True, False),
        (False, True),
    ]
    assert not any("netdev" in word or "nic" in word.split(",") for word in argv)


def test_missing_qemu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without QEMU the error says how to install it."""
    qemu.version.cache_clear()
    monkeypatch.setattr(qemu, "PROGRAM", "no-such-qemu")
    with pytest.raises(UsageError, match="no-such-qemu") as error:
        qemu.version()
    assert "install-packages qemu" in error.value.hint

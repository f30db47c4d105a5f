"""The backend `qemu` without booting: its files, its machine, and its cache."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from twoway.backends import qemu
from twoway.contract.plan import PLAN, Plan
from twoway.errors import RunError, UsageError
from twoway.guest import stock_kernel
from twoway.guest.stock_kernel import StockKernel

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

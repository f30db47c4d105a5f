"""The hosts' settings, and the page that lists those that are not Linux's."""

import re
from pathlib import Path

from support.guides import copy_listings
from support.running import ROOT
from support.warm_command import twoway

from twoway.description.stack import Stack
from twoway.plan.personality import node_sysctls, root_sysctls

_MIB = 1 << 20
# What Linux 6.12 has where no field and no row of the page changes it.
_AS_LINUX = {
    "net.ipv4.ip_forward": 0,
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
    "net.ipv4.tcp_timestamps": 1,
    "net.ipv4.tcp_sack": 1,
    "net.ipv4.tcp_dsack": 1,
    "net.ipv4.tcp_early_retrans": 3,
    "net.ipv4.tcp_recovery": 1,
    "net.ipv4.tcp_frto": 2,
    "net.ipv4.tcp_mtu_probing": 0,
}
# A host sends no redirects.
_OF_ROUTERS = {"net.ipv4.conf.all.send_redirects"}


def test_limits_has_each_setting_that_is_not_linuxs() -> None:
    """docs/limits.md has each setting of a host with Linux's receivers that differs from Linux."""
    stack = Stack(acks="delayed", timestamps=True)
    settings = node_sysctls(stack, 32 * _MIB, router=False) | root_sysctls(32 * _MIB)
    others = {name: value for name, value in settings.items() if _AS_LINUX.get(name) != value}
    table = (ROOT / "docs/limits.md").read_text(encoding="utf-8").partition("| `papers` |")[2]
    here = {
        name: cells[1]
        for row in re.findall(r"^\| (.*) \|$", table, re.MULTILINE)
        for cells in [row.split(" | ")]
        for name in re.findall(r"`([a-z0-9_.]+)`", cells[0])
    }
    assert others.keys() - _OF_ROUTERS == {name for name in here if name.startswith("net.")}
    for name, value in others.items():
        if str(value) in ("0", "1") and name not in _OF_ROUTERS:
            assert here[name].startswith(str(value)), name
        elif str(value).endswith(str(32 * _MIB)):
            assert here[name] == "32 MiB, more on long paths", name
    assert here["gso_max_segs"] == str(stack.gso_max_segs)
    assert here.keys() >= {"tso", "gso", "gro", "tx", "rx", "sg"}


def test_the_experiment_on_one_of_them_is_sound(tmp_path: Path) -> None:
    """The guide's experiment on packets of several segments passes `vet` at each seed."""
    copy_listings("own-experiment.md", tmp_path, "share-link.yml", "share.yml")
    assert twoway("vet", "share.yml", cwd=tmp_path).stderr == "1 experiment is sound: 10 points\n"

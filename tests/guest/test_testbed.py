"""The module twoway_testbed alone, on any guest: LAYER=sanitized runs this file, too."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import ROOT, SMALL, write_experiment
from support.runs import carry_out, kept_in_guest

from twoway.backends.uml import Uml
from twoway.guest.cache import Guest
from twoway.manifest import read_manifest


def test_a_device_refuses_what_it_does_not_know(guest: Guest, tmp_path: Path) -> None:
    """Lines with unknown or wrong words are refused, each with its own error.

    A tap counts a ping's six packets twice, outgoing and incoming; a tap whose interface is deleted
    ends; and the module can be unloaded.
    """
    program = ROOT / "tests/support/guest/instruments_in_guest.py"
    kept_in_guest(guest, tmp_path / "run", program, modules="twoway_testbed")
    found = json.loads((tmp_path / "run/found.json").read_text())
    assert found["otherwise"] == []
    assert found["ping"].startswith("12 packets captured\n")
    assert found["gone"].startswith("0 packets captured\n")


def test_a_run_within_the_kernel(guest: Guest, tmp_path: Path) -> None:
    """A run recorded in the kernel ends without a complaint or a lost packet."""
    experiment = write_experiment(tmp_path, {**SMALL, "duration_s": 0.6})
    folder = carry_out(experiment, tmp_path / "results", Uml(guest))
    assert set(read_manifest(folder).capture_drops.values()) == {0}
    assert len((folder / "sockets/tcp-info.csv").read_text().splitlines()) > 100


@pytest.fixture(scope="module")
def found(guest: Guest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what one boot finds about each claim on the module."""
    folder = tmp_path_factory.mktemp("claims") / "run"
    program = ROOT / "tests/support/guest/testbed_claims_in_guest.py"
    kept_in_guest(guest, folder, program, modules="twoway_testbed")
    return dict(json.loads((folder / "found.json").read_text()))


def test_the_device_asks_for_a_capability(found: dict[str, Any]) -> None:
    """Root without CAP_NET_ADMIN cannot open the device."""
    assert found["without_capability"]


def test_a_tap_is_of_ethernet(found: dict[str, Any]) -> None:
    """A tap on an interface that is not Ethernet is refused, with a reason in the kernel's log."""
    assert found["not_ethernet"] == {
        "error": "EPROTONOSUPPORT",
        "log": "twoway_testbed: n0: not an Ethernet interface, and a capture is of Ethernet",
    }


def test_files_are_regular(found: dict[str, Any]) -> None:
    """A FIFO or a device is refused as a file, because a write could wait for a reader."""
    assert found["not_regular"] == {"unread": "ENXIO", "read": "EINVAL", "device": "EINVAL"}


def test_a_tap_has_bounded_memory(found: dict[str, Any]) -> None:
    """A tap drops packets that exceed its blocks, and counts each of them."""
    burst = found["burst"]
    assert burst["received"] == burst["sent"]
    assert burst["captured"] + burst["dropped"] == burst["sent"]
    assert burst["in_file"] == burst["captured"] > 0
    assert burst["dropped"] > 0


def test_a_capture_goes_to_the_host(found: dict[str, Any]) -> None:
    """A capture takes no page cache, and a reader misses no packet while it is written."""
    capture = found["on_the_host"]
    assert capture["resident"] == 0
    assert 0 < capture["first"] < capture["captured"]
    assert capture["in_file"] == capture["captured"]


def test_a_vlan_tag_is_put_back(found: dict[str, Any]) -> None:
    """A capture has the VLAN tags that the kernel keeps apart from frames, as tcpdump's has."""
    ours, theirs = found["vlan"]
    assert ours == theirs
    assert ours.count("81002005") == 4


def test_the_queues_of_mq_are_summed(found: dict[str, Any]) -> None:
    """The length of mq is the sum of its queues."""
    assert found["multiqueue"] == ["d1", "3", "126", "0"]


def test_an_interrupted_read_may_be_made_again(found: dict[str, Any]) -> None:
    """After a signal interrupts a read, the next read returns the same samples."""
    assert found["interrupted"] == {"early": True, "rows": 10}


def test_namespaces_with_tables_of_their_own(found: dict[str, Any]) -> None:
    """Connections are sampled in every namespace, even in one with its own hash table."""
    assert found["namespaces"] == ["first", "first", "second", "second"]

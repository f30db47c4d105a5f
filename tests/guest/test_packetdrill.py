"""Scripts of packetdrill in guests, with a program of ours in its place, and the real one."""

import json
import shutil
import subprocess
from pathlib import Path

import atlas_page
import pytest
from capture_analysis.reading.capture import read_capture
from support.running import ROOT
from support.today import DAY
from support.warm_command import twoway

from twoway.guest.cache import Guest, find_guest
from twoway.runs.packetdrill import Trial, Verdict, run_trial


@pytest.fixture(scope="module")
def guest() -> Guest:
    """The wide guest, which has TUN."""
    found = find_guest("wide")
    if found is None:
        pytest.skip("the kernel wide is not built: `twoway build --kernel wide` does it")
    return found


@pytest.fixture(scope="module")
def drill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile a program that speaks to TUN and waits for ticks as packetdrill does."""
    program = tmp_path_factory.mktemp("drill") / "drill"
    source = ROOT / "tests/support/guest/drill.c"
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-o", program, source], check=True)
    return program


def _run(guest: Guest, drill: Path, folder: Path, word: str, tolerance_us: int = 4000) -> Verdict:
    script = folder / f"{word}.pkt"
    script.write_text(word + "\n")
    trial = Trial(script, script.name, "ipv4")
    return run_trial(trial, guest, drill, (f"--tolerance_usecs={tolerance_us}",))


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("send", ""),
        ("hang", "it still ran after 180 s of its clock"),
        ("fork", "it has more processes than a guest allows"),
        ("fill", "it writes a file larger than a guest allows"),
    ],
)
def test_a_script_ends(guest: Guest, drill: Path, tmp_path: Path, word: str, problem: str) -> None:
    """A script that waits, forks or writes without end is ended, with a sentence."""
    assert _run(guest, drill, tmp_path, word).problem == problem


def test_a_millisecond_late_fails_at_a_tenth_of_it(
    guest: Guest, drill: Path, tmp_path: Path
) -> None:
    """A failure has its line, both times, and the packet at the time of the event, each time."""
    first, second = (_run(guest, drill, tmp_path, "send", 100) for _ in range(2))
    assert first == second
    assert first.line == 1
    assert first.times_s == (0.1, 0.101001)
    (tmp_path / "tun.pcap").write_bytes(first.capture)
    packets, _ = read_capture(tmp_path / "tun.pcap", every_protocol=True)
    assert len(packets) > 0


def test_the_command_reports_in_three_formats(guest: Guest, drill: Path, tmp_path: Path) -> None:
    """KTAP, JUnit and JSON have the same verdicts, and the same bytes in the second run."""
    assert guest
    for name in ("send", "hang"):
        (tmp_path / f"{name}.pkt").write_text(f"{name}\n")
    seen = []
    for _ in range(2):
        files = ("--json", tmp_path / "json", "--junit", tmp_path / "xml")
        words = ("--packetdrill", drill, "--variant", "ipv4", "--results", tmp_path, *files)
        done = twoway("packetdrill", tmp_path, *words)
        assert done.returncode == 1
        seen.append((done.stdout, *((tmp_path / each).read_text() for each in ("json", "xml"))))
    assert seen[0] == seen[1]
    ktap, document, xml = seen[0]
    assert ktap.splitlines()[-1] == "# pass 1, fail 1"
    assert "\nnot ok 1 hang.pkt ipv4\nok 2 send.pkt ipv4\n" in ktap
    assert [each["pass"] for each in json.loads(document)["scripts"]] == [False, True]
    assert 'tests="2" failures="1"' in xml
    assert (tmp_path / "packetdrill/hang.pkt.ipv4.pcap").is_file()


def test_a_cell_of_the_atlas_is_that_of_any_list(guest: Guest) -> None:
    """Situations played by themselves have the cells that all of them together left."""
    names = ["syn-retries", "pacing-bbr", "delayed-ack"]
    head, *rows = atlas_page.kept()
    if guest.release not in head:
        pytest.skip(f"the atlas has {', '.join(head[1:])}, and not {guest.release}")
    expected = {row[0]: row[head.index(guest.release)] for row in rows}
    assert atlas_page.cells(guest, names) == [expected[name] for name in names]


def test_selftests_are_those_of_the_kernels_source(guest: Guest, tmp_path: Path) -> None:
    """A folder without tests is refused, and so are options that its tests do not have."""
    for words, said in (
        (["net/tcp_ap"], 'did you mean "net/tcp_ao"?'),
        (["net/packetdrill", "--packetdrill", tmp_path], f"{tmp_path}: packetdrill cannot be read"),
        (["net/packetdrill:a.pkt"], "a.pkt: no test of net/packetdrill"),
        (
            ["net/mptcp", "--variant", "ipv4", "--tolerance", "1us"],
            "net/mptcp: has no scripts of packetdrill for --variant, --tolerance",
        ),
        (["net/lib"], "net/lib: its Makefile has no test"),
    ):
        done = twoway("selftests", *words, "--results", tmp_path)
        assert done.returncode == 2
        assert said in done.stderr
    assert guest


# The script of Fast Open takes three times as long as all other tests here: `make test` has it on
# one day of seven, `make check` always.
@pytest.mark.parametrize(
    ("kernel", "test", "ended"),
    [
        pytest.param(
            "wide",
            "net:tcp_fastopen_backup_key.sh",  # over IPv4 and IPv6
            "",
            marks=[pytest.mark.long] * (DAY != 0),
        ),
        ("wide", "net/tcp_ao:connect_ipv6", ""),
        ("guest", "net/tcp_ao:connect_ipv6", "Tests require TCP-AO support (CONFIG_TCP_AO)"),
    ],
)
def test_a_program_of_the_selftests_runs(
    guest: Guest, tmp_path: Path, kernel: str, test: str, ended: str
) -> None:
    """A test of Fast Open and one of TCP-AO pass, or say which option the kernel lacks."""
    done = twoway("selftests", test, "--kernel", kernel, "--results", tmp_path)
    assert done.returncode == 0, done.stdout
    skipped = f" # SKIP {ended}" if ended else ""
    assert f"\nok 1 {test.replace(':', ' ')}{skipped}\n" in done.stdout
    assert guest


@pytest.mark.long
def test_the_kernels_own_scripts_pass(tmp_path: Path) -> None:
    """Each script of the kernel's selftests passes at 4 ms, over IPv4 and IPv6."""
    if not shutil.which("packetdrill"):
        pytest.skip("packetdrill is not on PATH: build it (docs/guides/packetdrill.md)")
    words = ("--variant", "ipv4", "--variant", "ipv6", "--results", tmp_path)
    done = twoway("selftests", "net/packetdrill", *words)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("\nok ") >= 48

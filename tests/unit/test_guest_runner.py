"""The guest's runner: its own modules, late changes, and sentences about commands that fail."""

import re
import sys
from unittest.mock import Mock

import network
import plan_clock
import pytest
import run
from network import GuestError
from support.running import ran

from twoway.guest.runner import compiled_runner

# The runner forbids it for the guest; here each later test file would be compiled at each start.
sys.dont_write_bytecode = False


def test_the_compiled_runner_reads_no_module() -> None:
    """The compiled runner has each module of its own and of Python that it imports."""
    argv = [sys.executable, "-I", "-S", "-v", str(compiled_runner())]
    done = ran(argv)
    assert "No such file or directory: '/mnt/run/plan.json'\n" in done.stderr
    assert 'File "/mnt/twoway/vm/guest/run.py", line ' in done.stderr
    read = re.findall(r"^import '(\S+)' # <\S+SourceFileLoader", done.stderr, re.MULTILINE)
    assert {name.partition(".")[0] for name in read} <= {"abc", "codecs", "encodings", "io"}


def test_a_change_that_lasts_is_refused() -> None:
    """A change of a link that ends too late fails the run, and the error has its lateness."""
    change = {"kind": "command", "node": None, "run": ["true"], "stdin": ["qdisc change"]}
    run.change(change | {"at_ns": 0, "by_ns": plan_clock.plan_now_ns() + 10**12})
    with pytest.raises(GuestError, match=r"qdisc change: in force after \d+ us"):
        run.change(change | {"at_ns": plan_clock.plan_now_ns(), "by_ns": plan_clock.plan_now_ns()})


# The guest's error sentences about commands that fail.


def test_what_a_program_complains_of_is_told() -> None:
    """An error of a program has its node, its arguments and its error text, if any."""
    with pytest.raises(network.GuestError, match=r"^h1: sh -c echo no >&2; exit 3: no$"):
        network.run_program("h1", ["sh", "-c", "echo no >&2; exit 3"])
    with pytest.raises(network.GuestError, match=r"^guest: sh -c cat; exit 1: given twice$"):
        network.run_program(None, ["sh", "-c", "cat; exit 1"], ["given", "twice"])


def test_the_line_of_a_batch_that_failed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in a batch has the failed command's line and the message of ip or tc."""
    answers = iter(['Illegal "limit"\nCommand failed -:2\n', "Command failed -:1\n", "killed\n"])
    server = Mock(run=lambda _namespace, _lines: (1, "", next(answers)))
    monkeypatch.setattr("network._fork_server", lambda *_: server)
    for program, sentence in (
        ("ip", "r1: ip -batch -: line 2, 'link show': Illegal \"limit\""),
        ("tc", "r1: tc -batch -: line 1, 'qdisc show': refused without an error message"),
        ("tc", "r1: tc -batch -: killed"),
    ):
        with pytest.raises(network.GuestError) as caught:
            network.run_program("r1", [program, "-batch", "-"], ["qdisc show", "link show"])
        assert str(caught.value) == sentence


UNKNOWN = "Error: Specified qdisc kind is unknown."
TALKING = "We have an error talking to the kernel"
EGRESS = "filter add dev r1-eth1 egress matchall action"


@pytest.mark.parametrize(
    ("line", "words", "module"),
    [
        (
            f"{EGRESS} gact pass random determ drop 20",
            *(f"Error: Failed to load TC action module. {TALKING}", "act_gact"),
        ),
        (
            f"{EGRESS} police rate 1bit burst 1",
            *(f"Error: TC classifier not found. {TALKING}", "cls_matchall"),
        ),
        ("qdisc replace dev r1-eth1 root handle 1: netem rate 8bit", UNKNOWN, "sch_netem"),
        ("qdisc add dev r1-eth1 parent 1:1 handle 2: cake bandwidth 1bit", UNKNOWN, "sch_cake"),
    ],
)
def test_a_module_that_the_kernel_lacks_is_named(
    monkeypatch: pytest.MonkeyPatch, line: str, words: str, module: str
) -> None:
    """If the kernel lacks an action, classifier or qdisc, the error names its module."""
    server = Mock(run=lambda _namespace, _lines: (2, "", f"{words}\nCommand failed -:1\n"))
    monkeypatch.setattr("network._fork_server", lambda *_: server)
    with pytest.raises(network.GuestError) as caught:
        network.run_program("r1", ["tc", "-batch", "-"], [line])
    assert str(caught.value) == (
        f"r1: tc -batch -: line 1, {line!r}: {words}: the kernel has no {module}, built in or as "
        "a module"
    )

"""What the guest says of commands that fail."""

from unittest.mock import Mock

import network
import pytest


def test_what_a_program_complains_of_is_told() -> None:
    """A program that fails is named with its node, its arguments and its error's words, if any."""
    with pytest.raises(network.GuestError, match=r"^h1: sh -c echo no >&2; exit 3: no$"):
        network.run_program("h1", ["sh", "-c", "echo no >&2; exit 3"])
    with pytest.raises(network.GuestError, match=r"^guest: sh -c cat; exit 1: given twice$"):
        network.run_program(None, ["sh", "-c", "cat; exit 1"], ["given", "twice"])


def test_the_line_of_a_batch_that_failed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command in a batch is named with its line, and with what ip or tc says of it."""
    answers = iter(['Illegal "limit"\nCommand failed -:2\n', "Command failed -:1\n", "killed\n"])
    server = Mock(run=lambda _namespace, _lines: (1, "", next(answers)))
    monkeypatch.setattr("network._fork_server", lambda *_: server)
    for program, sentence in (
        ("ip", "r1: ip -batch -: line 2, 'link show': Illegal \"limit\""),
        ("tc", "r1: tc -batch -: line 1, 'qdisc show': refused without a word"),
        ("tc", "r1: tc -batch -: killed"),
    ):
        with pytest.raises(network.GuestError) as caught:
            network.run_program("r1", [program, "-batch", "-"], ["qdisc show", "link show"])
        assert str(caught.value) == sentence

"""Measuring another machine's clock: the bounds hold whatever the network does."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from twoway.errors import RunError
from twoway.lab import clock_probe
from twoway.lab.clock_probe import answer, ask

HERE = "127.0.0.1"
SKEW_NS = -7_000_000_321
SESSION = 1 << 62


@contextmanager
def responder(
    seconds: float = 60, at: str = HERE, session: int | None = SESSION
) -> Iterator[tuple[int, threading.Thread]]:
    """Start a responder; return its port and its thread."""
    with clock_probe._socket(at) as free:
        free.bind((at, 0))
        port = free.getsockname()[1]
    thread = threading.Thread(target=answer, args=(at, port, seconds, session))
    thread.start()
    try:
        yield port, thread
    finally:
        with clock_probe._socket(at) as end:
            end.sendto(clock_probe._QUESTION.pack(SESSION, -1), (at, port))
        thread.join()


@contextmanager
def elsewhere(port: int, *, there_s: float, back_s: float) -> Iterator[int]:
    """Make a slow path to a responder with another clock.

    Yields: the port at which the path begins.
    """
    ways = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for way in ways:
        way.bind((HERE, 0))
        way.settimeout(0.1)
    here, there = ways
    there.connect((HERE, port))
    ended = threading.Event()

    def carry() -> None:
        while not ended.is_set():
            try:
                question, who = here.recvfrom(64)
                time.sleep(there_s)
                there.send(question)
                *named, received, sent = clock_probe._ANSWER.unpack(there.recv(64))
            except TimeoutError:
                continue
            time.sleep(back_s)
            skewed = (received + SKEW_NS, sent + SKEW_NS)
            here.sendto(clock_probe._ANSWER.pack(*named, *skewed), who)

    thread = threading.Thread(target=carry)
    thread.start()
    try:
        yield here.getsockname()[1]
    finally:
        ended.set()
        thread.join()
        for way in ways:
            way.close()


@pytest.mark.parametrize(("there_s", "back_s"), [(0, 0), (0.003, 0), (0, 0.003)])
def test_a_skewed_clock(there_s: float, back_s: float) -> None:
    """The offset's error is within its bound, however much longer one direction takes."""
    with (
        responder() as (port, _),
        elsewhere(port, there_s=there_s, back_s=back_s) as way,
    ):
        measured = ask(HERE, way, questions=20, session=SESSION)
    assert abs(measured.offset_ns - SKEW_NS) <= measured.uncertainty_ns
    assert measured.uncertainty_ns >= (there_s + back_s) * 1e9 / 2


@pytest.mark.parametrize("at", [HERE, "::1"])
def test_a_clock_that_is_the_same(at: str) -> None:
    """This machine's own clock has the offset 0, and the responder ends on request."""
    with responder(at=at) as (port, thread):
        measured = ask(at, port, session=SESSION)
        thread.join()
    assert abs(measured.offset_ns) <= measured.uncertainty_ns


def test_a_responder_nobody_asks() -> None:
    """A responder without requests ends by itself, whatever other packets arrive."""
    with responder(0.2) as (port, thread):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"?", (HERE, port))
        thread.join(timeout=5)
    assert not thread.is_alive()


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that does not answer is named, with its port."""
    monkeypatch.setattr(clock_probe, "_MOST_LOST", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind((HERE, 0))
        port = silent.getsockname()[1]
        with pytest.raises(RunError, match=f"{HERE}: its clock does not answer on UDP port {port}"):
            ask(HERE, port, questions=3)


def _until_it_answers(stranger: socket.socket, port: int) -> None:
    """Ask in the session until a responder, which may just be starting, answers."""
    stranger.settimeout(0.05)
    while True:
        stranger.sendto(clock_probe._QUESTION.pack(SESSION, 0), (HERE, port))
        with suppress(TimeoutError, ConnectionRefusedError):
            stranger.recv(100)
            return


def test_a_stranger_ends_no_session() -> None:
    """Only the session's own number ends it, and a responder answers in no other session."""
    with responder() as (port, thread), clock_probe._socket(HERE) as stranger:
        _until_it_answers(stranger, port)
        for datagram in (
            clock_probe._QUESTION.pack(SESSION + 1, -1),
            clock_probe._QUESTION.pack(SESSION + 1, 7),
            b"\xff" * 8,
            b"",
        ):
            stranger.sendto(datagram, (HERE, port))
        measured = ask(HERE, port, questions=3, session=SESSION)
        thread.join()
        with suppress(TimeoutError):
            while reply := stranger.recv(100):
                assert clock_probe._ANSWER.unpack(reply)[0] == SESSION
    assert abs(measured.offset_ns) <= measured.uncertainty_ns


def test_by_hand_the_last_session_ends() -> None:
    """Without a number a responder answers everyone; who has not asked cannot end it."""
    with responder(session=None) as (port, thread), clock_probe._socket(HERE) as stranger:
        _until_it_answers(stranger, port)
        stranger.sendto(clock_probe._QUESTION.pack(5, -1), (HERE, port))
        assert ask(HERE, port, questions=3).uncertainty_ns >= 0
        thread.join()


@pytest.mark.parametrize(
    "reply",
    [
        b"x",
        b"x" * 100,
        clock_probe._ANSWER.pack(SESSION, -5, 0, 0),
        clock_probe._ANSWER.pack(SESSION + 1, 0, 0, 0),
    ],
)
def test_answers_of_a_stranger_are_ignored(monkeypatch: pytest.MonkeyPatch, reply: bytes) -> None:
    """Replies of another form, request or session count as none, however often they come."""
    monkeypatch.setattr(clock_probe, "_MOST_LOST", 0)
    monkeypatch.setattr(clock_probe, "_REPLY_TIMEOUT_S", 0.2)
    ended = threading.Event()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flooding:
        flooding.bind((HERE, 0))

        def flood() -> None:
            _, who = flooding.recvfrom(64)
            while not ended.wait(0.01):
                flooding.sendto(reply, who)

        thread = threading.Thread(target=flood)
        thread.start()
        with pytest.raises(RunError, match="its clock does not answer"):
            ask(HERE, flooding.getsockname()[1], session=SESSION)
        ended.set()
        thread.join()


def test_a_session_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A responder that answers too slowly is given up after the time of a session."""
    monkeypatch.setattr(clock_probe, "_SESSION_S", 0.1)
    with (
        responder() as (port, _),
        elsewhere(port, there_s=0.05, back_s=0) as slow,
        pytest.raises(RunError, match="its clock does not answer"),
    ):
        ask(HERE, slow, questions=1000, session=SESSION)

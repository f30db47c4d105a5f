"""Measuring another machine's clock: the bounds hold whatever the network does."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from twoway.errors import RunError
from twoway.lab import clock_probe
from twoway.lab.clock_probe import answer, ask

HERE = "127.0.0.1"
SKEW_NS = -7_000_000_321


@contextmanager
def responder(seconds: float = 60, at: str = HERE) -> Iterator[tuple[int, threading.Thread]]:
    """Start a responder; return its port and its thread."""
    with clock_probe._socket(at, 1) as free:
        free.bind((at, 0))
        port = free.getsockname()[1]
    thread = threading.Thread(target=answer, args=(at, port, seconds))
    thread.start()
    try:
        yield port, thread
    finally:
        with clock_probe._socket(at, 1) as end:
            end.sendto(clock_probe._QUESTION.pack(-1), (at, port))
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
                number, *times = clock_probe._ANSWER.unpack(there.recv(64))
            except TimeoutError:
                continue
            time.sleep(back_s)
            here.sendto(clock_probe._ANSWER.pack(number, *(t + SKEW_NS for t in times)), who)

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
        measured = ask(HERE, way, questions=20)
    assert abs(measured.offset_ns - SKEW_NS) <= measured.uncertainty_ns
    assert measured.uncertainty_ns >= (there_s + back_s) * 1e9 / 2


@pytest.mark.parametrize("at", [HERE, "::1"])
def test_a_clock_that_is_the_same(at: str) -> None:
    """This machine's own clock has the offset 0, and the responder ends on request."""
    with responder(at=at) as (port, thread):
        measured = ask(at, port)
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

"""A guest's console socket is asked, and no other socket of the machine."""

import socket
from pathlib import Path

import pytest

from twoway.backends import uml


def _listener(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.settimeout(0)
    made.bind(str(path))
    return made


@pytest.fixture
def console(tmp_path: Path) -> Path:
    """Return the path of the console socket of a guest."""
    folder = tmp_path / ".guest/uml/twoway"
    folder.mkdir(parents=True)
    return folder / "mconsole"


def test_the_guests_own_socket_is_asked(
    tmp_path: Path, console: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request reaches the socket that the guest's kernel has made."""
    monkeypatch.setattr(uml, "_ANSWER_S", 0)
    (tmp_path / "log").mkdir()
    (tmp_path / "log/console.txt").touch()
    with _listener(console) as own:
        said = uml._running_process(tmp_path)
        assert own.recv(1000).startswith(b"\xbe\xba\xfe\xca\x02\0\0\0\x07\0\0\0sysrq p")
    assert said == "its kernel does not name the running process"


def test_a_link_to_another_socket_is_not_followed(tmp_path: Path, console: Path) -> None:
    """No request reaches a socket to which a link in the guest's folder leads."""
    with _listener(tmp_path / "other") as other:
        console.symlink_to(tmp_path / "other")
        said = uml._running_process(tmp_path)
        with pytest.raises(BlockingIOError):
            other.recv(1000)
    assert said == "its kernel does not answer (Socket operation on non-socket)"


def test_a_file_in_place_of_the_socket_is_no_answer(tmp_path: Path, console: Path) -> None:
    """A plain file in place of the socket counts as no answer."""
    console.touch()
    assert "does not answer" in uml._running_process(tmp_path)

"""Unmodified programs of the host's file system run on an experiment's hosts."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from capture_analysis.reading.capture import read_capture
from support.guides import carry_out_lines, copy_listings
from support.plans import run_folder, shell
from support.running import ROOT, SMALL, measure, write_experiment
from support.runs import carry_out
from support.today import DAY, DAYS
from support.warm_command import twoway

from twoway.backends import uml
from twoway.backends.native import Native
from twoway.backends.sandbox import GUEST_PATH
from twoway.description.point import point_names
from twoway.errors import RunError, UsageError
from twoway.guest.cache import Guest, built_guest
from twoway.manifest import read_manifest
from twoway.paths import cache
from twoway.plan.plan import build_plan
from twoway.report.report import analyse_run
from twoway.runs.points import load_point
from twoway.runs.run import run_experiment

pytestmark = pytest.mark.usefixtures("guest")

GUIDE = ROOT / "docs/guides/programs.md"
PAGE_BYTES = 100_000
SSHD = """
mkdir -p /run/sshd && echo root:x:1:::::: > /etc/shadow
exec /usr/sbin/sshd -f /dev/null -D -e -h $HOME/host_key -o PidFile=none \
  -o AuthorizedKeysFile=$HOME/key.pub -o StrictModes=no -o "Subsystem=sftp internal-sftp"
"""
SCP = f"""
head -c {PAGE_BYTES} /dev/zero > data
exec scp -q -i key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null data h2:/tmp/got
"""
SERVE = f"head -c {PAGE_BYTES} /dev/zero > page; exec python3 -u -m http.server 80"
NGINX = f"""
head -c {PAGE_BYTES} /dev/zero > page && mkdir -p /var/lib/nginx
exec nginx -p $HOME -c nginx.conf
"""
NGINX_CONF = """
user root;
daemon off;
worker_processes 4;
pid nginx.pid;
error_log stderr;
events {}
http { access_log off; server { listen 80; root .; } }
"""
DNSMASQ = """
exec dnsmasq --no-daemon --conf-file=/dev/null --no-resolv --user=root --pid-file= \
  --address=/example.test/192.0.2.1
"""
QUIC = f"""
head -c {PAGE_BYTES} /dev/zero > page
exec gtlsserver --quiet '*' 4433 quic_key certificate
"""


def _left(run: Path) -> dict[str, str]:
    """Return digests of the files that programs and captures leave."""
    files = (path for part in ("pcap", "programs") for path in sorted((run / part).iterdir()))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _times_and_sizes(run: Path) -> list[tuple[int, int]]:
    """Return times and sizes of all packets at the client's interface."""
    packets, _ = read_capture(run / "pcap/h1-eth0.pcap.zst", every_protocol=True)
    return list(zip(packets.time_ns.tolist(), packets.frame_bytes.tolist(), strict=True))


def _sizes(run: Path) -> list[int]:
    """Return sizes of all packets at the client's interface."""
    return [size for _, size in _times_and_sizes(run)]


@dataclass(frozen=True)
class Pair:
    """A server and a client.

    Attributes:
        server: the server's shell script; None if the client needs none.
        client: the client's shell script.
        payload: bytes that all packets of both carry at least.
        needs: the programs of both.
        server_files, client_files: their files beside the experiment's.
        repeats: the part of a run that is equal in the next run.
    """

    server: str | None
    client: str
    payload: int
    needs: tuple[str, ...]
    server_files: tuple[str, ...] = ()
    client_files: tuple[str, ...] = ()
    repeats: Callable[[Path], object] = _left


PAIRS = {
    "curl": Pair(SERVE, "curl -sS -o page http://h2/page", PAGE_BYTES, ("curl",)),
    "wget": Pair(SERVE, "wget -q http://h2/page", PAGE_BYTES, ("wget",)),
    "iperf": Pair("iperf -s", "iperf -c h2 -t 0.2", PAGE_BYTES, ("iperf",)),
    "iperf3": Pair("iperf3 -s", "iperf3 -c h2 -u -b 1M -n 20000", 1000, ("iperf3",)),
    "socat": Pair(
        "socat UDP-RECVFROM:7,fork EXEC:cat", "echo echo | socat -t 0.1 - UDP:h2:7", 5, ("socat",)
    ),
    "ping": Pair(None, "ping -c 3 -i 0.1 h2", 64, ("ping",)),
    "scp": Pair(SSHD, SCP, PAGE_BYTES, ("sshd", "scp"), ("host_key", "key.pub"), ("key",)),
    "nginx": Pair(
        NGINX,
        "curl -sSZ --no-progress-meter -o '#1' 'http://h2/page?[1-4]'",
        4 * PAGE_BYTES,
        ("nginx", "curl"),
        ("nginx.conf",),
    ),
    "dig": Pair(
        DNSMASQ, "dig @h2 www.example.test; dig +tcp @h2 example.test", 200, ("dnsmasq", "dig")
    ),
    # The processor's own random numbers choose header bits that QUIC wants random.
    "quic": Pair(
        QUIC,
        "gtlsclient --quiet --exit-on-all-streams-close h2 4433 https://h2/page",
        PAGE_BYTES,
        ("gtlsserver", "gtlsclient"),
        ("quic_key", "certificate"),
        repeats=_times_and_sizes,
    ),
    # Debian 12's Go 1.19 uses the processor's counter to choose the next thread.
    "irtt": Pair(
        "irtt server", "irtt client -i 20ms -d 0.5s -l 172 h2", 50 * 172, ("irtt",), repeats=_sizes
    ),
}


def _experiment(folder: Path, *programs: dict[str, Any], **fields: Any) -> Path:
    return write_experiment(folder, {**SMALL, "flows": [], "programs": list(programs), **fields})


def _shell(name: str, host: str, script: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "host": host, "command": ["sh", "-c", script], **fields}


def _run(path: Path, results: Path) -> Path:
    return run_experiment(load_point(str(path)), uml.Uml(built_guest()), results)


def _trouble(folder: Path, *programs: dict[str, Any]) -> str:
    """Return the error sentence of a run of programs."""
    with pytest.raises(RunError) as caught:
        carry_out(_experiment(folder, *programs), folder / "results")
    return str(caught.value)


def _need(*commands: str) -> None:
    for command in commands:
        if shutil.which(command, path=GUEST_PATH) is None:
            pytest.skip(f"{command} is not installed here")


def _make_files(folder: Path) -> None:
    """Make the keys and settings that the pairs need."""
    for name in ("host_key", "key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / name],
            check=True,
        )
    certify = "req -x509 -noenc -newkey ec -pkeyopt ec_paramgen_curve:P-256 -subj /CN=h2"
    subprocess.run(
        ["openssl", *certify.split(), "-keyout", "quic_key", "-out", "certificate"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    for name in ("host_key", "key", "quic_key"):
        (folder / name).chmod(0o644)
    (folder / "nginx.conf").write_text(NGINX_CONF)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_programs(name: str, tmp_path: Path) -> None:
    """A server and a client work as on any machine, and a second run repeats their results.

    The date chooses the pairs that run twice.
    """
    pair = PAIRS[name]
    _need(*pair.needs, "ssh-keygen", "openssl")
    _make_files(tmp_path)
    programs = [_shell("client", "h1", pair.client, start_s=0.5, files=[*pair.client_files])]
    if pair.server:
        files = [*pair.server_files]
        programs.append(_shell("server", "h2", pair.server, exit_code=None, files=files))
    path = _experiment(tmp_path, *programs)
    found = measure(path, tmp_path / "results")["found"]
    ways = [each[direction] for each in found for direction in ("forward", "backward")]
    assert sum(direction["payload_bytes"] for direction in ways) >= pair.payload
    assert not any(direction["lost"] for direction in ways)
    if name in [*PAIRS][DAY::DAYS]:
        first, second = (tmp_path / "results/latest").resolve(), _run(path, tmp_path / "again")
        assert pair.repeats(first) == pair.repeats(second)


@pytest.mark.slow
def test_a_static_program_with_threads(tmp_path: Path) -> None:
    """A static Go binary with threads is copied into the guest, works, and repeats its bytes."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        pytest.skip("go is not installed here")
    (tmp_path / "main.go").write_text(
        """package main
import ("fmt"; "io"; "net"; "os")
func main() {
	if len(os.Args) > 1 {
		c, err := net.Dial("tcp", os.Args[1])
		if err != nil { panic(err) }
		n, _ := io.Copy(io.Discard, c)
		fmt.Println(n)
		return
	}
	l, err := net.Listen("tcp", ":80")
	if err != nil { panic(err) }
	for {
		c, _ := l.Accept()
		go func() { c.Write(make([]byte, 100000)); c.Close() }()
	}
}
"""
    )
    settings = {**os.environ, "CGO_ENABLED": "0", "GOCACHE": str(cache() / "go")}
    build = [go, "build", "-ldflags", "-s -w", "-o", "tool", "main.go"]
    subprocess.run(build, cwd=tmp_path, env=settings, check=True)
    server = {"name": "server", "host": "h2", "files": ["tool"], "exit_code": None}
    client = {"name": "client", "host": "h1", "files": ["tool"], "start_s": 0.5}
    path = _experiment(
        tmp_path, {**server, "command": ["./tool"]}, {**client, "command": ["./tool", "h2:80"]}
    )
    runs = [carry_out(path, tmp_path / "results"), _run(path, tmp_path / "again")]
    assert (runs[0] / "programs/client.out").read_text() == f"{PAGE_BYTES}\n"
    assert _left(runs[0]) == _left(runs[1])


def test_registers_are_a_process_s_own(tmp_path: Path) -> None:
    """SSE registers outlast calls, switches, signals, faults, fork, vfork and ptrace."""
    source = str(ROOT / "tests/support/guest/fp_registers.c")
    build = ["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", source, "-o", "registers"]
    subprocess.run(build, cwd=tmp_path, check=True)
    command = {"name": "own", "host": "h1", "files": ["registers"], "command": ["./registers"]}
    run = carry_out(_experiment(tmp_path, command), tmp_path / "results")
    assert (run / "programs/own.out").read_text() == "each had its own registers\n"


def test_flows_that_nobody_declares(tmp_path: Path) -> None:
    """A program's connection beside a flow is found, with its bytes, times and metrics."""
    curl = PAIRS["curl"].client
    path = _experiment(
        tmp_path,
        _shell("server", "h2", SERVE, exit_code=None),
        _shell("fetch", "h1", curl, start_s=0.5),
        flows=SMALL["flows"],
    )
    document = measure(path, tmp_path / "results")
    (found,) = document["found"]
    assert found["hosts"] == ["h1", "h2"]
    assert found["protocol"] == "tcp"
    assert re.fullmatch(r"10\.0\.1\.2:\d+ > 10\.0\.2\.2:80", found["name"])
    page = found["backward"]
    assert PAGE_BYTES < page["payload_bytes"] < PAGE_BYTES + 1000
    assert page["metrics"]["data_offered"]["value"] <= page["packets"]
    took_s = document["metrics"]["run_time.fetch"]["value"]
    assert found["start_s"] - 0.5 < took_s < found["end_s"] - 0.5
    assert document["metrics"]["run_time.server"]["value"] is None
    assert all(row["verdict"] == "pass" for row in document["fidelity"])


SEND = """\
import socket
from time import sleep
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.bind(("", 4433))
for _ in range(40):
    sender.sendto(bytes(1000), ("h2", 9))
    sleep(0.1)
"""


def test_a_connection_whose_packets_are_all_lost(tmp_path: Path) -> None:
    """A run whose SYNs are all lost is measured; the last packet of all may be under way."""
    line = {"rate_mbit": 8, "delay_ms": 8, "queue_packets": 20}
    lossy = {**line, "loss": {"schedule": [[0, 100]]}}
    connect = "import socket; socket.create_connection(('10.0.2.2', 7))"
    client = {"name": "client", "host": "h1", "exit_code": 1, "command": ["python3", "-c", connect]}
    document = {
        **SMALL,
        "profile": {"directions": {"forward": lossy, "reverse": line}},
        "stack": {"preset": "linux", "sysctls": {"net.ipv4.tcp_syn_retries": 1}},
        "flows": [],
        "programs": [client],
        "duration_s": 4,
    }
    found = measure(write_experiment(tmp_path, document), tmp_path / "results")["found"]
    ((there, back),) = [(each["forward"], each["backward"]) for each in found]
    assert (there["packets"], there["lost"], back["packets"]) == (3, 2, 0)


def test_goodput_of_a_port_of_udp(tmp_path: Path) -> None:
    """A program's goodput is the payload from its port, over its time in the steady window.

    It counts in Jain's index; shares of seconds do not cover it and are undefined.
    """
    path = _experiment(
        tmp_path,
        _shell("send", "h1", f"python3 -c '{SEND}'", udp_port=4433),
        _shell("sink", "h2", "exec sleep 100", exit_code=None),
        flows=SMALL["flows"][:1],
        duration_s=6,
        warm_up_s=1,
    )
    document = measure(path, tmp_path / "results")
    (sent,) = (each for each in document["found"] if each["protocol"] == "udp")
    assert sent["forward"]["payload_bytes"] == 40_000
    metrics = document["metrics"]
    name = SMALL["flows"][0]["name"]
    steady = 40 - 10
    assert metrics["goodput.send"]["value"] == pytest.approx(steady * 8000 / 3e6, rel=1 / steady)
    assert "goodput.sink" not in metrics
    x, y = (metrics[f"goodput.{each}"]["value"] for each in ("send", name))
    expected = (x + y) ** 2 / (2 * (x * x + y * y))
    assert metrics["jain_index"]["value"] == pytest.approx(expected)
    for undefined in (f"share_least.{name}", f"convergence_time.{name}", "jain_index_least"):
        assert metrics[undefined]["value"] is None


def test_files_that_a_program_leaves(tmp_path: Path) -> None:
    """Files that a program keeps are in the run's folder, and the page links them."""
    left = _shell("log", "h1", "printf made > a.qlog", keeps=["a.qlog"])
    folder = carry_out(_experiment(tmp_path, left), tmp_path / "results")
    assert (folder / "programs/log/a.qlog").read_text() == "made"
    analyse_run(folder)
    assert '<a href="programs/log/a.qlog">' in (folder / "report.html").read_text()


def test_a_program_that_the_machine_lacks(tmp_path: Path) -> None:
    """An experiment with such a program, in `setup`, too, is refused before it runs."""
    document = {
        **SMALL,
        "hosts": {"h1": {"setup": "no-such-tool"}},
        "programs": [{"name": "it", "host": "h1", "command": ["no-other-tool"]}],
    }
    done = twoway("run", write_experiment(tmp_path, document), "--results", tmp_path / "results")
    assert done.returncode == 2
    assert "hosts.h1.setup: line 1: no-such-tool: no such program in" in done.stderr
    assert "programs.0.command.0: no-other-tool: no such program in" in done.stderr
    assert not (tmp_path / "results").exists()


def test_a_file_that_a_program_does_not_leave(tmp_path: Path) -> None:
    """A run fails if a program does not write a file that it should keep."""
    left = _shell("log", "h1", "mkdir a.qlog", keeps=["a.qlog"])
    assert "the guest left no programs/log/a.qlog" in _trouble(tmp_path, left)


def test_round_trips_of_a_ping(tmp_path: Path) -> None:
    """ICMP echoes have the round trips that ping prints, to within two microseconds."""
    path = _experiment(tmp_path, _shell("ping", "h1", "ping -c 5 -i 0.1 h2"))
    folder = tmp_path / "results"
    (echoes,) = measure(path, folder)["found"]
    (run,) = (each.parent for each in folder.glob("*/*/programs"))
    said = re.search(r"min/avg/max/mdev = ([\d.]+)/", (run / "programs/ping.out").read_text())
    assert said is not None
    least_ms = echoes["forward"]["metrics"]["rtt_min"]["value"]
    assert float(said[1]) == pytest.approx(least_ms, abs=0.002)
    assert "rtt_min" not in echoes["backward"]["metrics"]


def test_a_program_sees_its_folder_and_its_variables(tmp_path: Path) -> None:
    """A program gets its files with content and permissions, three variables, and host names."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site/page").write_bytes(bytes(range(256)))
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\nenv -u PWD -u SHLVL -u _ | sort; cat site/page | wc -c; id -u\n")
    tool.chmod(0o755)
    program = _shell("see", "h1", "./tool; getent hosts h2; stat -c %a site/page tool")
    program |= {"files": ["tool", "site"], "environment": {"COLOUR": "a b"}}
    run = carry_out(_experiment(tmp_path, program), tmp_path / "results")
    assert (run / "programs/see.out").read_text().split("\n") == [
        "COLOUR=a b",
        "HOME=/tmp/programs/see",
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        "256",
        "0",
        "10.0.2.2        h2",
        "600",
        "700",
        "",
    ]
    (ended,) = read_manifest(run).programs
    assert (ended.exit_status, ended.by_itself) == (0, True)


@pytest.mark.parametrize(
    ("script", "fields", "trouble"),
    [
        ("echo no luck >&2; exit 3", {}, "it: exit status 3, not 0: no luck"),
        ("exit 0", {"exit_code": 3}, "it: exit status 0, not 3"),
        ("exit 4", {"exit_code": None}, "it: ended by itself, with exit status 4, before it was"),
        (
            "sleep 9",
            {},
            "it: was still running when it had to end; `exit_code: null` is for what runs",
        ),
        ("exec head -c 65M /dev/zero", {}, "it: exit status -25, not 0"),
    ],
)
def test_programs_that_do_not_end_as_they_must(
    script: str, fields: dict[str, Any], trouble: str, tmp_path: Path
) -> None:
    """A wrong exit code, an early or missing end, and too much output fail the run."""
    assert f"in the guest: {trouble}" in _trouble(tmp_path, _shell("it", "h1", script, **fields))


def test_both_sides_of_a_failing_pair_are_heard(tmp_path: Path) -> None:
    """The error of a failing program is followed by the other programs' last output."""
    server = _shell("server", "h2", "echo locked >&2; exec sleep 9", exit_code=None)
    silent = _shell("silent", "h2", "exec sleep 9", exit_code=None)
    client = _shell("client", "h1", "echo denied >&2; exit 1", start_s=0.5)
    first, second, *_ = _trouble(tmp_path, server, silent, client).splitlines()
    assert first == "in the guest: client: exit status 1, not 0: denied"
    assert second == "server wrote: locked"


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    """A command that this machine has outside of /usr is an error that names its program."""
    (tmp_path / "mine").write_text("#!/bin/sh\n")
    (tmp_path / "mine").chmod(0o755)
    path = {"PATH": str(tmp_path)}
    program = {"name": "it", "host": "h1", "command": ["mine"], "environment": path}
    said = _trouble(tmp_path, program)
    assert said == "in the guest: it: mine: No such file or directory"


def test_programs_stop_when_they_are_to(tmp_path: Path) -> None:
    """A program with a stop time ends then, with its children, even if it ignores SIGTERM."""
    programs = [
        _shell("listens", "h1", "sleep 9 & wait", exit_code=None, stop_s=0.25),
        _shell("deaf", "h1", "trap '' TERM; sleep 99", exit_code=None, stop_s=0.25),
    ]
    run = carry_out(_experiment(tmp_path, *programs), tmp_path / "results")
    manifest = read_manifest(run)
    after = {p.name: (p.end_ns - manifest.clock.start_ns) / 1e9 for p in manifest.programs}
    assert after["listens"] == pytest.approx(0.25, abs=0.001)
    assert 6.5 <= after["deaf"] < 7


def test_a_program_that_spins_is_named(guest: Guest, tmp_path: Path) -> None:
    """The watchdog names the program and the command that lets no virtual time pass."""
    path = _experiment(tmp_path, _shell("spinner", "h1", "while :; do :; done"))
    folder = run_folder(tmp_path / "run", build_plan(load_point(str(path)), in_kernel=True))
    with pytest.raises(RunError) as caught:
        uml.run(guest, folder, lambda _: None, stall_s=5)
    assert str(caught.value) == (
        "the guest's clock has not moved for 5 s of wall time; "
        "running in the guest: sh (programs: spinner)"
    )


def test_other_backends_run_none(tmp_path: Path) -> None:
    """The backend native refuses programs before it changes anything."""
    path = _experiment(tmp_path, _shell("it", "h1", "exit 0"))
    folder = run_folder(tmp_path / "run", build_plan(load_point(str(path))))
    with pytest.raises(
        UsageError, match=r"programs\.it: not possible with the backend native; uml has it"
    ):
        Native(tmp_path).run(folder, lambda _: None)


def test_the_guide_works_as_written(tmp_path: Path) -> None:
    """The guide's experiment, alone in a folder, prints the guide's times."""
    _need("curl")
    text = GUIDE.read_text("utf-8")
    listing, changed, *_, datagrams = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    path = tmp_path / "page.yml"
    path.write_text(listing, "utf-8")
    assert twoway("vet", path).returncode == 0
    alone = measure(path, tmp_path / "alone")["metrics"]["run_time.fetch"]["value"]
    path.write_text(listing + changed, "utf-8")
    assert len(yaml.safe_load(path.read_text())["flows"]) == 1
    (tmp_path / "udp.yml").write_text(listing + datagrams, "utf-8")
    assert twoway("vet", tmp_path / "udp.yml").returncode == 0
    beside = measure(path, tmp_path / "beside")["metrics"]["run_time.fetch"]["value"]
    assert re.findall(r"\*\*([0-9.]+) s\*\*", text) == [f"{alone:.2f}", f"{beside:.2f}"]


def test_the_guides_table(tmp_path: Path) -> None:
    """The guide's nginx behind a trace has the times, waits and losses of its table."""
    _need("nginx", "curl")
    copy_listings(GUIDE.name, tmp_path, "cell.yml", "nginx.conf")
    rows = [_row(point, tmp_path / "results") for point in point_names(str(tmp_path / "cell.yml"))]
    assert "\n".join(rows) in GUIDE.read_text("utf-8")


def test_the_guides_scp(tmp_path: Path) -> None:
    """The guide's sshd and scp copy a megabyte in the time that the guide prints."""
    _need("sshd", "scp", "ssh-keygen")
    carry_out_lines(GUIDE.name, "ssh-keygen", tmp_path)
    copy_listings(GUIDE.name, tmp_path, "copy.yml")
    took_s = measure(tmp_path / "copy.yml", tmp_path / "results")["metrics"]["run_time.scp"]
    assert f"`run_time.scp` is *{took_s['value']:.1f} s*" in GUIDE.read_text("utf-8")


@pytest.mark.long  # pip fetches wheels
def test_the_guides_quic(tmp_path: Path) -> None:
    """The guide's wheels, unpacked in the guest, fetch a megabyte over QUIC."""
    _need("openssl")
    carry_out_lines(GUIDE.name, "openssl", tmp_path)
    try:
        carry_out_lines(GUIDE.name, "/usr/bin/python3 -m pip", tmp_path)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no wheels: {error.stderr.decode()[-400:]}")
    copy_listings(GUIDE.name, tmp_path, "start", "server.py", "client.py", "quic.yml")
    run = carry_out(tmp_path / "quic.yml", tmp_path / "results")
    shown = GUIDE.read_text("utf-8").partition("`programs/client.out`")[2]
    assert (run / "programs/client.out").read_text() in shown


def _row(point: str, results: Path) -> str:
    """Return a point's row in the guide's table."""
    document = measure(Path(point), results)
    value = {name: metric["value"] for name, metric in document["metrics"].items()}
    (page,) = (each for each in document["found"] if each["protocol"] == "tcp")
    control, queue = re.findall(r"=(\w+)", point.partition("@")[2])
    wait, late = value["datagram_delay.call"], value["datagram_delay_p95.call"]
    return (
        f"| {control} | {queue} packets | {value['run_time.fetch']:.2f} s | {wait:.3f} s, "
        f"{late:.3f} s | {100 * value['datagram_loss.call']:.1f} % | {page['backward']['lost']} |"
    )


def test_a_program_loads_no_kernel_module(small: Path, tmp_path: Path) -> None:
    """After the plan's modules no program can load one, or lift that ban."""
    tries = "insmod /mnt/bin/tcp_tahoe.ko; echo 0 > /proc/sys/kernel/modules_disabled"
    script = f"{tries}; cat /proc/sys/kernel/modules_disabled; exit 0"
    document = yaml.safe_load(small.read_text())
    document["programs"] = [{"name": "evil", "host": "h1", "command": ["sh", "-c", script]}]
    folder = _run(write_experiment(tmp_path, document, "evil"), tmp_path / "results")
    assert (folder / "programs/evil.out").read_text() == "1\n"
    assert "tcp_tahoe.ko: Operation not permitted" in (folder / "programs/evil.err").read_text()


def test_a_module_that_the_plan_does_not_load_fails_the_run(
    guest: Guest, small: Path, tmp_path: Path
) -> None:
    """If a set-up command loads a module that is not in the plan, the run fails and names it."""
    plan = build_plan(load_point(str(small)))
    steps = (*plan.setup, shell("insmod /mnt/bin/tcp_tahoe.ko"))
    folder = run_folder(tmp_path / "run", plan.model_copy(update={"setup": steps}))
    with pytest.raises(RunError, match="module that no step of the plan loads: tcp_tahoe"):
        uml.run(guest, folder, lambda _: None)


@pytest.mark.parametrize(
    "command",
    [
        ["ip", "link", "add", "w0", "type", "wireguard"],
        ["ip", "link", "add", "g0", "type", "gre", "remote", "10.0.2.2"],
        ["python3", "-c", "import socket; socket.socket(2, 1, 262)"],  # MPTCP
        ["tc", "qdisc", "add", "dev", "h1-eth0", "root", "hhf"],
    ],
)
def test_what_the_guests_kernel_lacks(tmp_path: Path, command: list[str]) -> None:
    """A program that wants what the guest's kernel lacks fails, and the hint names limits.md."""
    program = {"name": "it", "host": "h1", "command": command}
    path = write_experiment(tmp_path, {**SMALL, "flows": [], "programs": [program]})
    with pytest.raises(RunError, match="in the guest: it: exit status") as raised:
        carry_out(path, tmp_path / "results")
    assert "docs/limits.md" in raised.value.hint

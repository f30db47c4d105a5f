"""Carry out plan.json in the guest: set up, send, record, stop.

This program runs as root in the guest, with only Python's standard library; its prompt is
Mininet's. It runs only commands of /mnt/run/plan.json, and writes to the same folder; nothing else
of the host is writable.

With --real-time the guest's clock ran while the guest booted, and is set to the plan's. With
--native there is no guest but namespaces of the host: the clock is the host's and must not be set,
and the host has carried out the set-up steps that change its whole kernel. A plan with a `share` is
one host's part of a multi-host run (twoway/lab/multihost_plan.py) and native: the nodes' namespaces
and their interfaces to other hosts exist already, and clock.json, which comes when all hosts are
ready, has the start of the plan's time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from operator import itemgetter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # -I leaves it out
sys.dont_write_bytecode = True

from daemons import Daemons, kernel_log  # noqa: E402 - after the path above
from network import (  # noqa: E402
    NETNS,
    GuestError,
    carried_out,
    libc,
    limit_descriptors,
    namespace,
    note,
    run_program,
)
from offloads import switch_off  # noqa: E402
from plan_clock import OFFSET, plan_now_ns, report_progress, sleep_until  # noqa: E402
from run_folder import RUN, make_folder, write_file  # noqa: E402

TYPE_CHECKING = False  # `typing` takes long to load
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PR_SET_TIMERSLACK = 29
# Time for the other hosts of a multi-host run to be ready.
ALL_READY_S = 300.0
# Sysctls that some kernels do not have, and the consequence: the first came with 6.7, the others
# are IPv6's.
ABSENT_MEANS = {
    "net.ipv4.tcp_backlog_ack_defer": 0,
    "net.ipv6.conf.all.disable_ipv6": 1,
    "net.ipv6.conf.default.disable_ipv6": 1,
}


def native() -> bool:
    """Tell whether this program runs on the host's own kernel."""
    return "--native" in sys.argv


def in_virtual_time() -> bool:
    """Tell whether this program runs in user-mode Linux."""
    return not native() and "--real-time" not in sys.argv


def execute(step: dict[str, Any]) -> None:
    """Carry out a step of set-up, start or teardown."""
    report_progress()
    carry_out(step)


def carry_out(step: dict[str, Any]) -> None:
    """Carry out a step."""
    with namespace(step["node"]):
        STEPS[step["kind"]](step)


def change(step: dict[str, Any]) -> None:
    """Carry out a step during the traffic, which must be short.

    Raises: GuestError if it ends too late.
    """
    carry_out(step)
    if (now_ns := plan_now_ns()) > step["by_ns"]:
        late_us = (now_ns - step["at_ns"]) // 1000
        raise GuestError(f"{step['node']}: {step['stdin'][0]}: in force after {late_us} us")


def _command(step: dict[str, Any]) -> None:
    run_program(step["node"], step["run"], step["stdin"])


def _load_module(step: dict[str, Any]) -> None:
    try:
        run_program(step["node"], step["run"])
    except GuestError as error:  # a module's own error is only in the kernel's log
        raise GuestError(f"{error}: {kernel_log()[-1]}") from error


def _save(step: dict[str, Any]) -> None:
    _keep(step["file"], run_program(step["node"], step["run"]))


def _copy(step: dict[str, Any]) -> None:
    note(step["node"], ("cat", step["source"]))
    with namespace(step["node"]):
        content = Path(step["source"]).read_text()
    _keep(step["file"], content)


def _keep(file: str, output: str) -> None:
    target = RUN / file
    make_folder(target.parent)
    write_file(target, output)


def _set_sysctls(step: dict[str, Any]) -> None:
    where = step["node"] or "guest"
    for name, value in step["sysctls"].items():
        path = Path("/proc/sys") / name.replace(".", "/")
        if ABSENT_MEANS.get(name) == value and not path.exists():
            continue
        note(step["node"], ("sysctl", "-w", f"{name}='{value}'"))
        try:
            got = _set_and_read(path, str(value)).split()
        except OSError as error:
            said = f"{error.strerror}, got {value}"
            raise GuestError(f"{where}: sysctl {name}: {said}") from error
        if got != str(value).split():
            raise GuestError(f"{where}: sysctl {name}: set {value}, reads {' '.join(got)}")


def _set_parameters(step: dict[str, Any]) -> None:
    for name, value in step["parameters"].items():
        path = Path("/sys/module") / step["module"] / "parameters" / name
        note(None, ("echo", value, ">", str(path)))
        field = f"modules.{step['module']}.{name}"
        try:
            got = _set_and_read(path, value).strip()
        except OSError as error:
            raise GuestError(f"{field}: {error.strerror}, got {value}") from error
        if {"Y": "1", "N": "0"}.get(got, got) != value:
            raise GuestError(f"{field}: set {value}, reads {got}")


def _set_and_read(path: Path, text: str) -> str:
    """Write a file of /proc/sys or /sys/module and read it again, in four system calls."""
    opened = os.open(path, os.O_RDWR)
    try:
        os.write(opened, text.encode())
        return os.pread(opened, 4096, 0).decode()
    finally:
        os.close(opened)


def _set_offloads(step: dict[str, Any]) -> None:
    words = (word for name in step["off"] for word in (name, "off"))
    note(step["node"], ("ethtool", "-K", step["interface"], *words))
    if on := switch_off(step["interface"], step["off"]):
        raise GuestError(f"{step['interface']}: offloads that stay on: {', '.join(on)}")


def _check(step: dict[str, Any]) -> None:
    """Compare the JSON documents that a program prints with the values that the plan expects."""
    output = run_program(step["node"], step["run"], step["stdin"])
    for reading in step["readings"]:
        document, end = json.JSONDecoder().raw_decode(output)
        _keep(reading["file"], output[:end])
        output = output[end:].lstrip()
        for expected in reading["expect"]:
            wanted, got = expected["value"], _look_up(document, expected["path"])
            if got != wanted:
                what = " ".join(expected["path"])
                raise GuestError(f"{reading['file']}: {what}: wanted {wanted}, reads {got}")


def _look_up(document: Any, path: list[str]) -> Any:
    """Follow keys into a document; in a list they select by name."""
    for key in path:
        if isinstance(document, list):
            document = next(
                (e for e in document if key in map(e.get, ("ifname", "dev", "dst", "mac"))),
                document[int(key)] if key.isdigit() and int(key) < len(document) else None,
            )
        elif isinstance(document, dict):
            document = document.get(key)
        else:
            return None
    return document


STEPS = {
    "make_network": _command,
    "load_module": _load_module,
    "set_parameters": _set_parameters,
    "set_sysctls": _set_sysctls,
    "set_offloads": _set_offloads,
    "command": _command,
    "save": _save,
    "copy": _copy,
    "check": _check,
}
# Steps without a node change the whole kernel: on a host, the host carries them out.
OF_THE_HOST = ("load_module", "set_sysctls")


def warm_up(plan: dict[str, Any]) -> None:
    """Load programs and modules that the host would read slowly.

    This is called before the traffic, in which reading would cost time.
    """
    import shutil  # noqa: PLC0415 - takes a while to load

    for program in plan["sinks"] + plan["sources"]:
        path = shutil.which(program["run"][0])
        if path:
            Path(path).read_bytes()
    subprocess.run(["ss", "--tcp", "--info"], capture_output=True, check=False)  # loads tcp_diag


def be_ready(plan: dict[str, Any]) -> None:
    """Wait until set-up is over on the plan's clock, which is set here."""
    ready_ns = plan["clock"]["ready_by_ns"]
    if not in_virtual_time():
        warm_up(plan)
    if plan["share"]:
        os.environ[OFFSET] = str(await_offset_ns())
        if plan_now_ns() > ready_ns:
            raise GuestError("learned the start of the plan's time after that start")
        await_links(plan)
        while plan_now_ns() < ready_ns - 10**9:
            report_progress()
            time.sleep(1)
    elif native():
        offset_ns = time.time_ns() - ready_ns
        os.environ[OFFSET] = str(offset_ns)
        (RUN / "clock.json").write_text(json.dumps({"offset_ns": offset_ns}))
    elif not in_virtual_time():
        time.clock_settime_ns(time.CLOCK_REALTIME, ready_ns)
    elif time.time_ns() > ready_ns:
        raise GuestError("set-up took longer in virtual time than the plan allows")
    sleep_until(ready_ns)


def await_offset_ns() -> int:
    """Report this host ready; wait for its clock's offset, ns.

    The offset is the host's clock minus the plan's.
    """
    (RUN / "ready").touch()
    deadline = time.monotonic() + ALL_READY_S
    while not (RUN / "clock.json").exists():
        if time.monotonic() > deadline:
            raise GuestError(f"learned no start time within {ALL_READY_S:.0f} s")
        report_progress()
        time.sleep(0.1)
    return int(json.loads((RUN / "clock.json").read_text())["offset_ns"])


def await_links(plan: dict[str, Any]) -> None:
    """Wait until both ends of each link to other hosts are up.

    A cable takes seconds.
    """
    for name, interface in plan["share"]["links"].items():
        while not has_signal(name):
            if plan_now_ns() > plan["clock"]["ready_by_ns"]:
                raise GuestError(f"{name}: no signal on {interface}: is its cable in?")
            report_progress()
            time.sleep(0.1)


def has_signal(interface: str) -> bool:
    """Tell whether an interface has a signal from its other end."""
    node = interface.rsplit("-", 1)[0]
    with namespace(node):
        (link,) = json.loads(run_program(node, ["ip", "-j", "link", "show", "dev", interface]))
    return "LOWER_UP" in link["flags"]


def set_up(plan: dict[str, Any]) -> None:
    """Carry out the steps of set-up."""
    limit_descriptors(plan)
    (NETNS / "init").symlink_to("/proc/1/ns/net")
    for step in plan["setup"]:
        if not (native() and step["kind"] in OF_THE_HOST and step["node"] is None):
            execute(step)


def user_programs(plan: dict[str, Any]) -> tuple[list[Any], Callable[[], None]]:
    """Return times and functions that start and stop the experiment's programs; and the last."""
    if not plan["user_programs"]:
        return [], lambda: None
    from programs import UserPrograms  # noqa: PLC0415 - takes a while to load

    named = UserPrograms(plan["user_programs"], RUN / "programs", plan_now_ns)
    return named.events(), named.finish


def perform(plan: dict[str, Any]) -> None:
    """Carry out the plan: set-up, recorders, traffic, teardown."""
    events, finish_named = user_programs(plan)
    set_up(plan)
    if plan["mode"] == "shell":
        from prompt import open_prompt  # noqa: PLC0415 - takes a while to load

        open_prompt(plan["topology"], RUN / "commands")
        return
    recorders, programs = Daemons(), Daemons()
    recorders.start(plan["recorders"] + plan["captures"])
    if in_virtual_time():  # a distribution's kernel loads its own modules on demand
        write_file("/proc/sys/kernel/modules_disabled", "1")
    be_ready(plan)
    programs.start(plan["sinks"])
    programs.start(plan["sources"])
    if plan["at_start"]:
        sleep_until(plan["clock"]["start_ns"])
    for step in plan["at_start"]:
        execute(step)
    events += ((step["at_ns"], partial(change, step)) for step in plan["changes"])
    for at_ns, act in sorted(events, key=itemgetter(0)):
        sleep_until(at_ns)
        act()
    sleep_until(plan["clock"]["stop_ns"])
    finish_named()
    programs.finish()
    time.sleep(plan["clock"]["settle_ns"] / 1e9)
    for step in plan["teardown"]:  # exactly of the time that the captures cover
        execute(step)
    recorders.interrupt()
    if in_virtual_time():
        refuse_other_modules(plan)


def refuse_other_modules(plan: dict[str, Any]) -> None:
    """Raise GuestError if a kernel module is loaded that no step of the plan loads."""
    named = {
        step["module"].replace("-", "_")  # as the kernel names it
        for step in plan["setup"]
        if step["kind"] == "load_module"
    }
    lines = Path("/proc/modules").read_text().splitlines()
    others = {line.split()[0] for line in lines} - named
    if others:
        names = ", ".join(sorted(others))
        raise GuestError(f"a kernel module that no step of the plan loads: {names}")


def main() -> int:
    """Carry out the plan; write a failure to guest-error.json for the host."""
    plan = json.loads((RUN / "plan.json").read_text())
    (RUN / "sockets").mkdir(exist_ok=True)
    if native():
        # Timer slack of 1 ns instead of 50 us (decision 0006); in a guest, init has set it.
        libc.prctl(PR_SET_TIMERSLACK, 1)
    try:
        perform(plan)
    except GuestError as error:
        (RUN / "guest-error.json").write_text(json.dumps({"error": str(error)}))
        return 1
    except OSError as error:
        (RUN / "guest-error.json").write_text(json.dumps({"error": f"{error}"}))
        return 1
    finally:
        with suppress(OSError):  # the message has been printed
            make_folder(RUN / "log")
            write_file(RUN / "log/commands.txt", "".join(f"{line}\n" for line in carried_out))
    return 0


if __name__ == "__main__":
    sys.exit(main())

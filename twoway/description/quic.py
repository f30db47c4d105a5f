"""QUIC in place of a row's flows under test: ngtcp2's server and client, as programs.

A column `quic-cubic` runs the rows of a suite with a download over HTTP/3 where another column has
a connection of TCP: from the same host, to the same host, from the same time on. The server's
congestion control is ngtcp2's own of that name.
"""

from collections.abc import Mapping
from typing import Any

from twoway.errors import UsageError

PREFIX = "quic-"
_CONTROLS = ("cubic", "reno", "bbr", "bbr2")
# The programs that a machine needs, and the packages that have them.
PROGRAMS = ("gtlsserver", "gtlsclient", "openssl")
PACKAGES = "ngtcp2-server ngtcp2-client openssl"
_FIRST_PORT = 4433
# ngtcp2's server answers a path of digits with as many bytes, 20 MiB at most, on each stream; a
# connection has 100 streams at once: 2 GB, more than any row's line carries.
_BYTES = 20_000_000
_STREAMS = 100
# The client starts later than the server by this time, within which the server listens.
_LATER_S = 0.001
# Fields of a flow that a download over QUIC has, too.
_KNOWN = {"name", "from", "to", "congestion", "start_s", "stop_s"}
_SERVE = """\
printf '[req]\\ndistinguished_name=d\\n[d]\\n' > openssl
openssl req -config openssl -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \\
  -days 9 -subj /CN=server -keyout key -out certificate
exec gtlsserver --quiet --mime-types-file=/dev/null --cc=$CC {host} {port} key certificate
"""


def is_quic(control: str) -> bool:
    """Tell whether a control is QUIC's, not a kernel's."""
    return control.startswith(PREFIX)


def check_quic(control: str) -> None:
    """Raise UsageError if ngtcp2 has no such control."""
    if control.removeprefix(PREFIX) not in _CONTROLS:
        raise UsageError(
            f"{control:.80}: no such congestion control of QUIC",
            f"there are {', '.join(PREFIX + each for each in _CONTROLS)}",
        )


def why_not(fields: Mapping[str, Any], axis: str) -> str | None:
    """Return the reason why a row cannot have QUIC in place of its flows under test, if any.

    Args:
        fields: the row's experiment.
        axis: the axis that sets the controls.
    """
    under_test = _under_test(fields, axis)
    if under_test is None:
        return f"not for a program: the row sets {', '.join(fields['matrix'][axis]['set'])}"
    set_elsewhere = {path for each in fields["matrix"].values() for path in each["set"]}
    for flow in (each for each in fields["flows"] if each["name"] in under_test):
        prefix, control = (f"flows.{flow['name']}{end}" for end in (".", ".congestion"))
        paths = [prefix + field for field in sorted({*flow} - _KNOWN)]
        paths += sorted(p for p in set_elsewhere if p.startswith(prefix) and p != control)
        if paths:
            return f"not for a program: the row sets {', '.join(paths)}"
    return None


def with_quic(fields: Mapping[str, Any], axis: str, control: str) -> dict[str, Any]:
    """Put programs in place of a row's flows under test, and make the axis set their control.

    A flow's name is that of the server, which sends the data; the client's ends in `-client`.
    """
    under_test = _under_test(fields, axis) or []
    programs = [*fields.get("programs", ())]
    for flow in fields["flows"]:
        if flow["name"] in under_test:
            programs += _programs(flow, _FIRST_PORT + len(programs))
    cc = control.removeprefix(PREFIX).partition("+")[0]  # without a column's stack or kernel
    paths = [f"programs.{name}.environment.CC" for name in under_test]
    to = {control: [cc] * len(paths) if len(paths) > 1 else cc}
    return {
        **fields,
        "flows": [flow for flow in fields["flows"] if flow["name"] not in under_test],
        "programs": programs,
        "matrix": {**fields["matrix"], axis: {"set": paths, "to": to}},
    }


def _under_test(fields: Mapping[str, Any], axis: str) -> list[str] | None:
    """List the flows whose control the axis sets; None if it sets anything else."""
    paths = [path.split(".") for path in fields["matrix"][axis]["set"]]
    if any(len(path) != 3 or (path[0], path[2]) != ("flows", "congestion") for path in paths):
        return None
    return [path[1] for path in paths]


def _programs(flow: Mapping[str, Any], port: int) -> list[dict[str, Any]]:
    server, stop = flow["from"], {"stop_s": flow["stop_s"]} if "stop_s" in flow else {}
    url = f"https://{server}/{_BYTES}"
    get = f"exec gtlsclient --quiet --nstreams={_STREAMS} {server} {port} {url} > /dev/null"
    return [
        {
            "name": flow["name"],
            "host": server,
            "environment": {"CC": "cubic"},
            "command": ["sh", "-c", _SERVE.format(host=server, port=port)],
            "exit_code": None,
            "udp_port": port,
        },
        {
            "name": f"{flow['name']}-client",
            "host": flow["to"],
            "start_s": max(flow.get("start_s", 0), _LATER_S),
            "command": ["sh", "-c", get],
            "exit_code": None,
            **stop,
        },
    ]

"""Write a plan's set-up as a shell script of ip, tc, sysctl and ethtool, and read its result."""

from collections.abc import Iterable
from shlex import join

from twoway.contract.plan import Copy, Plan, SetOffloads, SetParameters, SetSysctls, Step

# Each node's links, addresses, routes, neighbours and queues, in both versions of IP.
SEEN = (
    *("ip -d -j link show", "ip -j address show", "ip neigh show | sort", "ip -j rule show"),
    *("ip -4 -j route show table all", "ip -6 -j route show table all", "tc -j -d qdisc show"),
)


def script(plan: Plan) -> str:
    """Return the commands of a plan's set-up, one per line, each in its node's namespace."""
    lines = [f"{_inside(step.node)}{command}" for step in plan.setup for command in _commands(step)]
    return "\n".join(("set -e", *lines)) + "\n"


def _inside(node: str | None) -> str:
    return f"nsenter --net=/run/netns/{node} " if node else ""


def _commands(step: Step) -> Iterable[str]:
    if isinstance(step, SetSysctls):
        yield join(["sysctl", "-q", "-w", *(f"{n}={value}" for n, value in step.sysctls.items())])
    elif isinstance(step, SetParameters):
        for name, value in step.parameters.items():
            yield f"echo {value} > /sys/module/{step.module}/parameters/{name}"
    elif isinstance(step, SetOffloads):
        yield join(
            ["ethtool", "-K", step.interface, *(w for name in step.off for w in (name, "off"))]
        )
    elif not isinstance(step, Copy):
        typed = getattr(step, "stdin", ())
        yield "\n".join((f"{join(step.run)} > /dev/null << 'END'", *typed, "END"))


def seen(plan: Plan, name: str) -> str:
    """Return a script that writes the state of each node to a file of the run's folder."""
    settings = {
        s.node: join(["sysctl", *s.sysctls]) for s in plan.setup if isinstance(s, SetSysctls)
    }
    nodes = sorted({step.node for step in plan.setup if step.node})
    shown = [f"{_inside(node)}{each}" for node in nodes for each in (*SEEN, settings[node])]
    return "{ " + "; ".join(shown) + f"; }} > /mnt/run/{name}\n"

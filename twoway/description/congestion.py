"""Congestion controls that a flow may name, and their modules.

A control with a parameter is a family of names in the kernel, one per value: `fixed` with
window_packets 30 is "fixed30", which the module registers when loaded with `windows=30`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from twoway.paths import KERNEL_MODULES


@dataclass(frozen=True)
class Control:
    """A congestion control as experiments name it.

    Attributes:
        module: the kernel module with the control; None if it is part of the kernel.
        field: the flow's field with the control's parameter; None if it takes none.
        variants: the module's parameter that lists the values to register.
        most_variants: how many values that list may hold.
        can_be_paced: the stack can derive a pacing rate from the window, or the control sets one.
    """

    module: str | None = None
    field: str | None = None
    variants: str | None = None
    most_variants: int = 32
    can_be_paced: bool = True


# Controls of every guest's kernel (vm/guest.config), each with its parameters that can be written
# while the kernel runs.
KERNELS_OWN: Mapping[str, tuple[str, ...]] = {
    "reno": (),
    "bbr": (),
    "bic": (
        "beta",
        "fast_convergence",
        "initial_ssthresh",
        "low_window",
        "max_increment",
        "smooth_part",
    ),
    "cdg": (
        "backoff_beta",
        "backoff_factor",
        "hystart_detect",
        "use_ineff",
        "use_shadow",
        "use_tolerance",
    ),
    "cubic": (
        "beta",
        "fast_convergence",
        "hystart",
        "hystart_ack_delta_us",
        "hystart_detect",
        "hystart_low_window",
        "initial_ssthresh",
        "tcp_friendliness",
    ),
    "dctcp": ("dctcp_alpha_on_init", "dctcp_shift_g"),
    "highspeed": (),
    "htcp": ("use_bandwidth_switch", "use_rtt_scaling"),
    "hybla": ("rtt0",),
    "illinois": (),
    "lp": (),
    "nv": ("nv_min_cwnd", "nv_pad", "nv_reset_period"),
    "scalable": (),
    "vegas": ("alpha", "beta", "gamma"),
    "veno": (),
    "westwood": (),
    "yeah": (),
}
CONTROLS = {
    "bbr3": Control("tcp_bbr3"),
    "fixed": Control("tcp_fixed", "window_packets", "windows", can_be_paced=False),
    "fast": Control("tcp_fast", "alpha_packets", "alphas"),
    "prague": Control("tcp_prague"),
    "tahoe": Control("tcp_tahoe", can_be_paced=False),
    "tahoe_rto": Control("tcp_tahoe", can_be_paced=False),
    **dict.fromkeys(KERNELS_OWN, Control()),
}
# The largest value of a parameter, as in the fields of a flow.
_MOST_VALUE = 65535
# Every field of a flow that is a control's parameter.
PARAMETER_FIELDS = tuple(dict.fromkeys(c.field for c in CONTROLS.values() if c.field))


def parameter_of(name: str) -> tuple[str, str, int] | None:
    """Split the kernel's name of a control with a parameter: family, field and value.

    Returns None if the name is no family's followed by a number from 1 to 65535.
    """
    for family, control in CONTROLS.items():
        value = name.removeprefix(family)
        if control.field and re.fullmatch("[1-9][0-9]{0,4}", value) and int(value) <= _MOST_VALUE:
            return family, control.field, int(value)
    return None


def parameters_in_kernel(module: str) -> tuple[str, ...] | None:
    """List the parameters of a control that is part of the kernel, by its module's name.

    Returns None for any other module.
    """
    return KERNELS_OWN.get(module.removeprefix("tcp_")) if module.startswith("tcp_") else None


@cache
def module_parameters(module: str) -> tuple[str, ...]:
    """List the parameters that a kernel module's source declares.

    The kernel ignores a parameter that a module does not have, and writes a line to its log.
    """
    return declared_parameters((KERNEL_MODULES / f"{module}.c").read_text("utf-8"))


def declared_parameters(source: str) -> tuple[str, ...]:
    """List the parameters that a module's source in C declares."""
    declared = r"^module_param(?:_array)?(?:_named)?\((\w+),"
    return tuple(re.findall(declared, source, re.MULTILINE))

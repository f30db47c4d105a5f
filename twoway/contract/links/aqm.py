"""Active queue management."""

from typing import Any, ClassVar, Literal

from twoway.contract.links import ManagedQueue


class ActiveQueue(ManagedQueue):
    """A queue that drops or marks packets before it is full."""

    FIELD: ClassVar = "aqm"
    TITLE: ClassVar = "Queue management"
    DESCRIPTION: ClassVar = (
        "the queue's manager: `cake` (CoDel, a queue for each flow) and `cake-flowblind` "
        "(CoDel, one queue), which have no limit of packets; or, under HTB, the kernel's qdisc of "
        "that name with queue_packets as its limit, `fq_codel` without; `dualpi2` with "
        "`kernel: newest` alone"
    )
    WORDS: ClassVar[Any] = Literal[
        "drop-tail",
        "cake",
        "cake-flowblind",
        "codel",
        "pie",
        "sfq",
        "fq",
        "fq_codel",
        "fq_pie",
        "red",
        "choke",
        "dualpi2",
    ]
    USUAL: ClassVar = "drop-tail"

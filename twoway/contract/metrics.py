"""metrics.json: a run's metrics by name, and its fidelity checks."""

from typing import Literal

from pydantic import Field

from twoway.contract.judge import Verdict
from twoway.contract.model import Document, FileName, Record
from twoway.contract.network import ClockSource

METRICS = "metrics.json"


class Metric(Record):
    """A measured number."""

    value: float | None = Field(description="null if undefined: no ACK, no busy period")
    unit: str = Field(description="1 for shares and counts")
    error: float | None = Field(
        default=0.0,
        description="largest error due to the run's clock; null if the clock does not resolve the "
        "metric",
    )


class Way(Record):
    """One direction of a flow that the experiment does not declare."""

    packets: int = Field(description="that its sender sent")
    payload_bytes: int = Field(description="of these packets")
    lost: int | None = Field(
        description="packets that never arrived; null if others arrived: fragments"
    )
    metrics: dict[str, Metric] = Field(
        description="for a TCP connection the measures "
        "of capture-analysis from the captures of both "
        "ends; for TCP and echoes the round trips at their sender"
    )


class FoundFlow(Record):
    """A captured flow that the experiment does not declare, such as a program's."""

    name: str = Field(description="both ends, that of the first packet first")
    protocol: str = Field(description="tcp, udp, icmp, or the protocol's number in IP")
    hosts: tuple[str, str] = Field(description="the ends' hosts, in the order of the name")
    start_s: float = Field(description="its first packet, after the start of traffic")
    end_s: float = Field(description="the arrival of its last packet")
    forward: Way = Field(description="from the first end to the second")
    backward: Way = Field(description="from the second end to the first")


class FidelityRow(Record):
    """A test of the testbed by the run's own captures."""

    check: str = Field(description="what was checked")
    value: int | float | None = Field(description="the value found")
    bound: str = Field(description="the bound, in words")
    verdict: Verdict = Field(description="pass, FAIL, warning or cannot be told")
    needed: bool = Field(
        default=False, description="if the check cannot be told, the run tells too little"
    )


class Metrics(Document):
    """A run's metrics."""

    schema_: Literal[2] = Field(default=2, description="version of this format: 2")
    experiment: FileName = Field(description="the experiment's id, with its point")
    run: FileName = Field(description="the run's name")
    measured_sha256: str = Field(description="hash of what the measurement depends on")
    backend: str = Field(description="as in manifest.json")
    clock_source: ClockSource = Field(description="as in manifest.json")
    kernel: str = Field(description="the kernel's release")
    analysis: str = Field(default="", description="hash of the code that measured")
    metrics: dict[str, Metric] = Field(description="by name")
    found: tuple[FoundFlow, ...] = Field(
        default=(), description="flows that the experiment does not declare, in order of time"
    )
    fidelity: tuple[FidelityRow, ...] = Field(description="verdicts on the testbed")

    @property
    def sound(self) -> bool:
        """True if no fidelity check fails."""
        return all(row.verdict is not Verdict.FAIL for row in self.fidelity)

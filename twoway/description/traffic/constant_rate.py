"""Full packets at a constant rate."""

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, RootModel
from typing_extensions import override

from twoway.description.traffic.traffic import Span, Traffic

Rate = Annotated[float, Field(ge=1e-6, le=100_000)]


class ConstantRate(RootModel[Rate], Traffic):
    """Segments at equal intervals; the value is the rate, Mbit/s."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)
    FIELD: ClassVar = "rate_mbit"
    DESCRIPTION: ClassVar = "constant rate in Mbit/s of full IP packets; unlimited data by default"

    @override
    def source_options(self, span: Span) -> list[str]:
        """Return the options that write one segment per packet time at this rate."""
        interval_ns = round(span.mtu_bytes * 8e3 / self.root)
        return [f"interval {interval_ns}", f"sizes {span.segment_bytes}"]

    @override
    def packet_mbit(self, span: Span) -> float:
        """Return the rate."""
        return self.root

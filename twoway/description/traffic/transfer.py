"""A transfer of a given size, from the flow's start."""

from typing import Annotated, ClassVar

from pydantic import Field
from typing_extensions import override

from twoway.contract.model import Model
from twoway.description.traffic.traffic import Traffic


class Transfer(Model, Traffic):
    """A flow whose connections send a given payload, and then nothing."""

    FIELD: ClassVar = "transfer"
    DESCRIPTION: ClassVar = "payload of each connection, which sends no more after it"

    bytes_: Annotated[int, Field(ge=1, le=10**12, alias="bytes", description="payload of each")]

    @property
    @override
    def payload_bytes(self) -> int:
        """The payload of each connection."""
        return self.bytes_

"""Properties of a run that no check proves, beside the checks that hold."""

from pydantic import Field

from twoway.contract.model import Record


class NotProven(Record):
    """A property of a run that no check proves."""

    what: str = Field(description="the property, as a clause: that ..., which ..., when ...")
    why: str = Field(description="the reason")

    @property
    def sentence(self) -> str:
        """The sentence for people."""
        return f"not proven: {self.what} ({self.why})"

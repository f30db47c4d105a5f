"""The exceptions of this package."""


class AnalysisError(Exception):
    """A capture or a run folder that cannot be analysed; the message says why."""

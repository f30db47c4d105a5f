"""The errors this package raises."""


class AnalysisError(Exception):
    """A capture or a run folder that cannot be analysed; the message says which and why."""

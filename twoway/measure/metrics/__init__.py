"""The metrics of a run, a file for each concept: a new file is a new metric.

A file holds estimators: functions with the decorator `estimates`, which names what is measured and
the definitions of what is returned. Definitions of quantities that captures have, too, are those of
`capture_analysis.metrics`; the others stand here.
"""

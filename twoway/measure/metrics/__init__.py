"""The metrics of a run, one file for each concept: a new file is a new metric.

A file holds estimators: functions with the decorator `estimates`, which names the measured object
and the definitions of the returned values. Definitions that capture-analysis has, too, come from
`capture_analysis.metrics`; the others stand here.
"""

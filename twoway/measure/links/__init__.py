"""Measuring a link's elements: a file each, with its metrics and its fidelity checks.

A file has functions with `@estimates`, `@QueueCheck` and `@RunCheck` (see twoway.measure.metric and
twoway.measure.checks).
"""

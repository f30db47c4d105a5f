"""Measuring a link's elements: a file each, with its metrics and its fidelity checks.

A file may define `check(analysis, direction, view, error)`, which returns the rows for one queue,
and `check_run(analysis)`, which returns rows for the whole run. `error` is None in virtual time.
"""

"""Measuring a link's elements: a file each, with its metrics and its fidelity checks.

A file may have `check(analysis, direction, view, error)`, which lists the rows about one queue, and
`check_run(analysis)`, which lists those about all. `error` is None in virtual time.
"""

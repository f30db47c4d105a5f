"""What is measured of a link's elements: a file each, with its metrics and its fidelity check.

A file's `check(analysis, direction, view, error)` lists the rows about one queue; `error` is None
in virtual time.
"""

"""The metrics of a run, a file each: a new file is a new metric.

Each module defines SCOPE, what it is measured on; UNITS, its families of metrics with their units;
and a function `measure`, which returns a number for each family, NaN if undefined. The arguments of
`measure` depend on the scope, see `metric.Scope`.
"""

"""The metrics of a run, a file each: a newcomer adds one by adding a file.

Each module says what it is measured on (SCOPE), its families with their units (UNITS), and has a
function `measure` that returns a number for each family; NaN where it is undefined. What it takes
depends on the scope, see `metric.Scope`.
"""

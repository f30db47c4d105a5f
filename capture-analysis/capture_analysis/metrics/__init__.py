"""The metrics of captures, one file for each concept.

A file holds the `Definition` of each quantity, for all code that computes it, and its estimators:
from one capture (`FromOne`), from two captures of a path (`FromPair`). A run of the testbed is
measured elsewhere, under the same definitions. The module's docstring is the metric's page in the
manual; an estimator's docstring has the details for its captures.
"""

"""The metrics of captures, a file for each concept.

A file holds the `Definition` of each quantity, once for all that compute it, and its estimators
side by side: from one capture (`FromOne`), from two captures of a path (`FromPair`). A run of the
testbed is measured elsewhere, under the same definitions. The module's docstring is the metric's
page in the manual; an estimator's docstring says what holds for its captures alone.
"""

"""The papers' closed forms and models, and their predictions.

One module per paper holds its formulas, in physical units. The package `predictions` applies them
to an experiment's parameters.
"""

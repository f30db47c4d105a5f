"""The papers' closed forms and models, and their predictions.

A module per paper holds the formulas, in physical units. The package `predictions` applies them to
an experiment's parameters.
"""

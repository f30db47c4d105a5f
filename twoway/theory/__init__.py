"""The papers' closed forms and models, in physical units; and what they predict of an experiment.

A module per paper holds the formulas. `predictions` applies them to an experiment's parameters.
"""

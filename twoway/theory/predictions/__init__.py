"""Predictions for an experiment: a new file is a new theory.

Each module has a function `predict(setup)` that returns values by metric name, and may have
`printed_values(setup)`, which returns values of the paper's own formulas. Experiments refer to a
theory by the module's name (`theory: <name>`).
"""

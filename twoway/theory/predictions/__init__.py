"""Predictions for an experiment: a new file is a new theory.

Each module has a function `predict(setup)` that returns values by metric name, and may have
`printed(setup)`, which returns what the paper's own formulas give. Experiments refer to a theory by
the module's name (`theory: <name>`).
"""

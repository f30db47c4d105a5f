"""What a theory says about an experiment: a newcomer adds one by adding a file.

Each module here has a function `predict(setup)` that returns values by metric name. Experiments
refer to it by the module's name (`theory: <name>`).
"""

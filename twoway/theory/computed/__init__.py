"""Values of models that take too long to run whenever an experiment is read.

`python tests/support/computed_values.py` writes the files again, for all experiments.
"""

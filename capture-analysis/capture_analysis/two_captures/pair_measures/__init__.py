"""The metrics of two captures, a file each (see pair_measure.py)."""

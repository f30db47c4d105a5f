"""The metrics of two captures of one path, one file each (see pair_measure.py)."""

"""Analyse two captures of a path: common packets, and the clocks."""

"""Runs of twoway: the folder, its metrics and fidelity checks, its report."""

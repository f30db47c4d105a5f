"""Measuring a finished run: metrics and fidelity checks from its folder."""

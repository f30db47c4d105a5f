"""Analyse one capture: facts of its connections, and metrics.

Each file of `measures` has one metric.
"""

"""Metrics of one capture, a file each; found by listing this package."""

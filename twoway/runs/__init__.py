"""Runs: carrying out a plan, describing the run, and keeping it."""

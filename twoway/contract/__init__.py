"""Formats and names that all stages share."""

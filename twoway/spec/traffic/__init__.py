"""Kinds of traffic that a flow may have instead of unlimited data."""

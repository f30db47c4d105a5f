"""Helpers of the tests in this folder, imported as `support`."""

"""A finished run's folder, measured."""

"""A run's life: planned, carried out, described, kept."""

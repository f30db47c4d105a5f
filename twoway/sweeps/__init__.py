"""Sweeps: many runs, on all of this machine's cores or on a lab's workers."""

"""Every command of a run, in order, before any of them runs."""

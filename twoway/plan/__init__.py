"""The plan of a run: its commands, before the first one runs."""

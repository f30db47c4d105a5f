"""The plan of a run: every command, before the first one runs."""

"""The commands of `capture-analysis`, one file each.

Each has a docstring, which its --help shows, `add_arguments(parser)`, and `run(arguments)`, which
returns the exit status. cli.py lists them, and imports only the one that is asked for.
"""

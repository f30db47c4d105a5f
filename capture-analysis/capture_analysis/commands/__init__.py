"""The commands of `capture-analysis`, one file each.

Each module has a docstring, which --help shows, `add_arguments(parser)`, and `run(arguments)`,
which returns the exit status. cli.py lists them, and imports only the requested one.
"""

"""The commands of `capture-analysis`, one file each.

Each has a first docstring line, which is its help, `arguments(parser)` and `run(args)`, which
returns the exit status and imports what it needs only then: the command starts in a tenth of a
second.
"""

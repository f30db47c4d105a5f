"""The subcommands: functions of parsed arguments, return exit codes.

Each imports what it needs when it is called, so that `--help` does not wait for it.
"""

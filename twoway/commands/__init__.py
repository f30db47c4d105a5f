"""The subcommands: functions of parsed arguments, return exit codes.

Each imports its dependencies when it is called, so that `--help` is fast.
"""

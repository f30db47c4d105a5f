"""The subcommands: functions of their arguments that return the exit code.

What they need is imported as they are called: help must not wait for it.
"""

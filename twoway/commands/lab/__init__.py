"""The subcommands of `twoway lab`, a module each: HELP, add_arguments and run."""

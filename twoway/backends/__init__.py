"""Where an experiment runs: a kernel with a clock, and what keeps it from the host."""

"""Backends: kernels and clocks on which plans run, and the sandbox."""

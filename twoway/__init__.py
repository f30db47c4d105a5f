"""Two-way TCP on the real Linux kernel, in virtual time."""

__version__ = "0.1.0"

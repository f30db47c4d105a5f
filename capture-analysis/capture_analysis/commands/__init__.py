"""The commands on captures, a module each: options, and what they print."""

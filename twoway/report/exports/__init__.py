"""The formats of `twoway export`, a file for each: a new file is a new format."""

"""The formats of `twoway export`, one file for each: a new file is a new format."""

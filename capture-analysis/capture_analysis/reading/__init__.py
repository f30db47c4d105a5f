"""From files to columns: capture formats, compression, what is wrong with a file."""

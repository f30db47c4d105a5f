"""twoway: two-way TCP on the real Linux kernel, in virtual time."""

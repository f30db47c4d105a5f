"""Building guests into the cache: kernels, modules and programs."""

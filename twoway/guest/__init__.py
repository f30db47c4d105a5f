"""What guests are made of: kernels, their modules and programs, built once into the cache."""

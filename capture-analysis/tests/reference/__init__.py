"""Second implementations of the C library: slow and plain; the library must equal them.

No part of the product: tests give both the same input and compare the results.
"""

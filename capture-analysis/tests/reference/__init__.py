"""Second implementations of what the C library does: slow, plain, and what it must equal.

No part of the product: tests give both the same input and compare what comes out.
"""

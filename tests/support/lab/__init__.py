"""Hosts made of namespaces and machines, for the lab's tests."""

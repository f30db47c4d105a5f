"""Kinds of traffic that a flow may have instead of unlimited data: a file each.

A file's class adds a field to every flow, named by the class's `FIELD`.
"""

"""Formats of the benchmark results that the console shows, and the drawings made from them.

The console and the experiments both import this package, and neither imports the other.
"""

"""What benches measure for the console to show: the formats of their files, and the drawings made of them.

It stands between the two: the console and the laboratory both import it, and neither imports the other.
"""

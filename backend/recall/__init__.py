"""Recall: a report becomes interest vectors, the index finds articles near them, and the merge makes one list."""

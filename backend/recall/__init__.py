"""Recall: a report becomes interest vectors, the index finds news near them, the merge makes one list."""

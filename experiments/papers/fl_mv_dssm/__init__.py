"""FL-MV-DSSM on MovieLens-100K: two views of every user, cold starts, and baselines."""

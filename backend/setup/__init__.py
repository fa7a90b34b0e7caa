"""The first start, and the backfill of missing parts while the server already serves."""

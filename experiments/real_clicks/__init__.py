"""Federated learning on real clicks: a small ranker with counts and freshness on two weeks of EB-NeRD."""

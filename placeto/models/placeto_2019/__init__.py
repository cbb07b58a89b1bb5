"""Placeto as in its paper (Addanki et al. 2019, arXiv:1906.08879), with its ablations."""

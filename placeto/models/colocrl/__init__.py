"""ColocRL (Mirhoseini et al. 2017, arXiv:1706.04972)."""

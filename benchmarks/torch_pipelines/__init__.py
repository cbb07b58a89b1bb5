"""Plans of PyTorch pipelines against all other splits, executed."""

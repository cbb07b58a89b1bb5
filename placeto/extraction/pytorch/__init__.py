"""Training steps of PyTorch modules: captured, costed, grouped by module."""

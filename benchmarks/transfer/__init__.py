"""Trained policies on graphs that they have not seen: `python -m benchmarks.transfer`."""

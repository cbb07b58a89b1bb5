"""How fast things are, beside what they are compared with: `python -m benchmarks.speed`."""

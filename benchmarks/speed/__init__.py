"""How fast things are, beside what they are compared with: `python -m benchmarks.speed`.

Writes `results/speed.json`, all figures, and `results/speed.md`, the tables. Each graph
and each environment is measured in a process of its own, together with what it is compared with.
"""

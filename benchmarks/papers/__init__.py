"""The papers' tables with our figures beside them: `python -m benchmarks.papers`.

Writes `results/papers.json`, every run; `results/papers.md`, the tables; and `docs/papers.png`,
step time over placements evaluated. A run that is in the file is not done again: an interrupted
study goes on where it stopped.
"""

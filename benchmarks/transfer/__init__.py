"""Trained policies on graphs that they have not seen: `python -m benchmarks.transfer`.

Writes `results/transfer.json`, every run; `results/transfer.md`, the page; and `docs/transfer.png`,
cumulative distributions of step time. A run that is in the file is not done again: an interrupted
study goes on where it stopped, and the page shows what there is.
"""

"""The papers' tables with our figures beside them: `python -m benchmarks.papers`."""

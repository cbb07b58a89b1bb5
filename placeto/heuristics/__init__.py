"""Placements in one go: pure functions from a problem to devices."""

"""Placements that are run in turn, and what the costs must have been."""

"""The hierarchical planner (Mirhoseini et al., ICLR 2018)."""

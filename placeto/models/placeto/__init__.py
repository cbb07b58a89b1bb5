"""Placeto: sweeps that improve a placement, for any graph on any cluster, with one network."""

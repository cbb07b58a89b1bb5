"""Reports: what graphs, problems and placements look like to a person and as JSON."""

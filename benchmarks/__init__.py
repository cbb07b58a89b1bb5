"""Studies: scripts that print tables and write the results that the README and the docs show."""

"""What every room builds on: errors, units, files, directed graphs, compiled code on disk."""

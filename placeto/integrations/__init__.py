"""What other RL libraries need to train Placeto's network: one file a library."""

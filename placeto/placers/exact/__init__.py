"""The best placement of all, with a proof."""

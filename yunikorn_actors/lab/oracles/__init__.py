"""What judges a run, beside the invariants of the core."""

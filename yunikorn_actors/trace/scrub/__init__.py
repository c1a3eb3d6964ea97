"""A recording with other names, to be handed in with a bug."""

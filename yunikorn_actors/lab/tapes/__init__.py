"""A schedule as text: what it names, how it is read, played and kept."""

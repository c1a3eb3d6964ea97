"""The state of a recorded core at some moment."""

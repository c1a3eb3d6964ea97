"""Explores worlds that are drawn: each run has a world, bounds, faults and an order of its own."""

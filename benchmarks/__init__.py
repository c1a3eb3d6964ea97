"""Benchmarks of the whole core, through the interface a resource manager uses.

`python -m benchmarks` runs each workload on each topology in a process of its own, checks that the
result is right, and sets the figures against those of the Go core and against the targets, scaled
by how fast this machine runs plain Python. The load generator and the callback live in the measured
process: their cost is part of every figure, so they do as little as a resource manager can do.
"""

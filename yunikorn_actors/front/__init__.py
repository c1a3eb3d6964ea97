"""A front door to the core: futures, leases and plain arguments in place of requests and callbacks.

`Scheduler` and `AsyncScheduler` are all that a program needs; the core below is their `core`.
"""

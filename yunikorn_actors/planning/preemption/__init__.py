"""Preemption: which work is taken away, so that asks and queues get what they are entitled to.

Three reasons to take work away: a queue below its guarantee takes back what others use above
theirs, an ask that can run on one node alone makes room there, and a queue is brought under a
maximum that was lowered. What is allowed serves the planner and Context alike (`victim_rules.py`,
`victim_units.py`, `claimant.py`); the other modules look for victims. Everything is worked out
anew for each plan, from the replica and what is on its way.
"""

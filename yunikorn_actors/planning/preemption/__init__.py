"""Preemption: which work is taken away, so that asks and queues get what they are entitled to.

Three reasons to take work away: a queue below its guarantee takes back what others use above
theirs, an ask that can run on one node alone makes room there, and a queue is brought under a
maximum that was lowered. What is allowed serves the planner and Context alike (`victim_rules.py`,
`victim_units.py`, `claimant.py`); the other modules look for victims. Everything is worked out anew
for each plan, from the replica and what is on its way.

Its users are the stage `stages/preempt.py`, and `stages/guarantees.py` within it. They take the
leaves that are due from `agenda.Agenda`, make a `scene.Scene` of the partition for this plan, and
ask one of four entries:

- `victim_search.Search.next(app, spec, waiting) -> Solution | None`: the victims, and their node,
  for one ask of a queue below its guarantee. `gang_choice` and `single_choice` pick among the
  victims that it has found.
- `gang_claims.GangClaims.find(app, now_ns) -> Claim`: for all placeholders of a gang at once;
  `gang_packing` says whether they fit where the victims were.
- `required_node.victims_on(state, node, spec, free) -> victims | None`: on the one node of an ask.
- `quota.Enforcement.victims_of(queue) -> victims`: until a queue is under its maximum.
"""

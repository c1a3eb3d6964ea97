"""Context: the only writer of truth.

It owns the partitions of all resource managers. Every handler does its work item by item (check,
then record), and ends with one bundle of effects: the answers to the resource manager, the facts
for the subscribers, timers. Where the topology is `fused` it runs the planner itself, on the truth.
"""

from yunikorn_actors.machines.context.context import HANDLERS, Context

__all__ = ["Context", "HANDLERS"]

"""RmProxy: the door between resource managers and the core.

It checks the form of what comes in, names partitions on both sides, and says in the words of the
interface what the core decided: deliveries, questions to predicates, diagnoses.
"""

from yunikorn_actors.machines.rm_proxy.rm_proxy import HANDLERS, RmProxy

__all__ = ["HANDLERS", "RmProxy"]

"""Is it a policy? It is played in drawn worlds, each of its calls is watched, and faults are named.

`check_policy` is the entry; `yunikorn-actors policy check` and the fixture of the same name use it.
"""

from yunikorn_actors.lab.policy_check.check import Report, check_policy
from yunikorn_actors.lab.policy_check.findings import Finding

__all__ = ["Finding", "Report", "check_policy"]

"""Policies: who goes first, which node suits best, who may start, and who has to go.

`places` has the places where a policy decides, `inputs` what it is given. The others are shipped.
"""

from yunikorn_actors.policies.inputs import (
    Arrived,
    Candidate,
    Ended,
    Hold,
    Job,
    Left,
    Running,
    Sized,
    Started,
)
from yunikorn_actors.policies.places import Pool
from yunikorn_actors.policies.profile import Profile
from yunikorn_actors.policies.registry import InvalidPolicy, Policies, Policy
from yunikorn_actors.values.durations import NEVER_NS

__all__ = [
    "Arrived",
    "Candidate",
    "Ended",
    "Hold",
    "InvalidPolicy",
    "Job",
    "Left",
    "NEVER_NS",
    "Policies",
    "Policy",
    "Pool",
    "Profile",
    "Running",
    "Sized",
    "Started",
]

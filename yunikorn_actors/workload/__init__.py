"""Logs of real clusters, or workloads made in Python, through the real scheduler in virtual time.

Read a log with `Workload.read` or make one of jobs, `play` it on nodes, and look at the `Table`.
"""

from yunikorn_actors.workload.cluster import read_nodes
from yunikorn_actors.workload.job_stream import Workload
from yunikorn_actors.workload.jobs import Fault, Job, Mapping, Node, WorkloadError
from yunikorn_actors.workload.made import diurnal, exponential, fitted, lognormal, made, one_of
from yunikorn_actors.workload.player import Options, play
from yunikorn_actors.workload.table import Table

__all__ = [
    "Fault",
    "Job",
    "Mapping",
    "Node",
    "Options",
    "Table",
    "Workload",
    "WorkloadError",
    "diurnal",
    "exponential",
    "fitted",
    "lognormal",
    "made",
    "one_of",
    "play",
    "read_nodes",
]

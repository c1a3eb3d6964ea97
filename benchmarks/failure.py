"""Why a run has no figure."""


class BenchmarkFailed(Exception):
    """The run cannot be trusted, or did not end; no figure is printed."""


class TurnedDown(BenchmarkFailed):
    """The core turned down something of the workload."""


class Stalled(BenchmarkFailed):
    """Nothing happened for too long."""


class CheckFailed(BenchmarkFailed):
    """The books of the core and what it announced do not agree."""

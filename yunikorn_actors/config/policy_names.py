"""Names of policies beside the built-in orders, which a configuration may use."""

from msgspec import Struct


class PolicyNames(Struct, frozen=True, kw_only=True):
    """Which names stand for something; those that are shipped always do."""

    applications: tuple[str, ...] = (
        "fcfs",
        "easy",
        "conservative",
        "sjf",
        "largest-first",
        "fair-decay",
        "dominant-share",
    )
    """For `application.sort.policy`."""
    queues: tuple[str, ...] = ()
    """For `queue.sort.policy`."""
    nodes: tuple[str, ...] = ("best-fit", "fgd")
    """For `nodesortpolicy`."""
    is_closed: bool = False
    """Another name is a fault and no warning: where policies are given, one of them is meant."""

    is_open: bool = False
    """Any other name may stand for something, too: it is known elsewhere."""

    def of_property(self, key: str) -> tuple[str, ...]:
        return self.applications if key.startswith("application") else self.queues


SHIPPED_NAMES = PolicyNames()
ANY_NAMES = PolicyNames(is_open=True)

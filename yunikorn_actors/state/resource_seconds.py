"""Resource seconds: what an application has used over its life, by type of node.

An allocation is charged when it ends, and before it gets another size, for the whole seconds since
it was made; so nothing is done about it while it runs. What was preempted and what placeholders
used count apart.
"""

from typing import Self

from msgspec import Struct, field
from msgspec.structs import asdict

from yunikorn_actors.state.allocations import Allocation
from yunikorn_actors.values.durations import SECOND
from yunikorn_actors.values.resource import Resource, saturated

ResourceSeconds = dict[str, Resource]
"""Type of node to type of resource to quantity times seconds."""


class UsageHistory(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    used: ResourceSeconds = field(default_factory=dict)
    placeholder: ResourceSeconds = field(default_factory=dict)
    preempted: ResourceSeconds = field(default_factory=dict)

    def charge(self, allocation: Allocation, until_ns: int) -> None:
        """Add what an allocation has used since it was charged the last time."""
        # Whole seconds, less those that were charged before: rounding never adds up.
        lived_s = (until_ns - allocation.allocated_ns) // SECOND
        seconds = lived_s - allocation.charged_s
        if not seconds:
            return
        allocation.charged_s = lived_s
        amounts = self._part_of(allocation).setdefault(allocation.instance_type, {})
        for kind, quantity in allocation.resource.items():
            amounts[kind] = amounts.get(kind, 0) + quantity * seconds

    def saturated(self) -> Self:
        """Give it as a message can hold it: the sums are exact, and may be beyond an int64."""
        return type(self)(
            **{
                name: {instance: saturated(amounts) for instance, amounts in part.items()}
                for name, part in asdict(self).items()
            }
        )

    def _part_of(self, allocation: Allocation) -> ResourceSeconds:
        # Preempted counts before placeholder: a preempted placeholder is in the first.
        if allocation.beneficiary is not None:
            return self.preempted
        return self.placeholder if allocation.spec.placeholder else self.used


def tracked(part: ResourceSeconds) -> str:
    """Write one part down as it stands in a summary."""
    entries = (
        f"{instance}:{kind}={quantity}"
        for instance, amounts in sorted(part.items())
        for kind, quantity in sorted(amounts.items())
    )
    return f"TrackedResource{{{','.join(entries)}}}"

"""Checks of guaranteed and max, along the tree.

The limit comes down: no queue may have more than its parents leave it. The promises go up: what the
children are guaranteed must fit into what their parent is guaranteed, and into what it may have. A
resource type that one side does not name is not compared.

Written resources, still text by type, read into quantities when their turn has come.

Faulty quantities are found in the order of the checks, not while the document is read. To a check
that compares resources, a type whose quantity is faulty is not there.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from yunikorn_actors.config.fault import Fault
from yunikorn_actors.config.site import PartitionSite, Site
from yunikorn_actors.config.written import Entry
from yunikorn_actors.values.quantity import QuantityError, parse_quantity
from yunikorn_actors.values.resource import (
    Resource,
    add,
    component_wise_min,
    describe,
    fits_in_max_undef,
    is_zero,
    shared,
)


def amount_faults(path: str, amounts: Iterable[Entry[str]] | None) -> list[Fault]:
    """Return one fault for each text that is no quantity."""
    found = []
    for amount in amounts or ():
        try:
            parse_quantity(amount.key, amount.value)
        except QuantityError as error:
            what = f"{error} of resource {amount.key!r}"
            remedy = (
                "write digits and perhaps one of k M G T P E Ki Mi Gi Ti Pi Ei, m for vcore only"
            )
            found.append(Fault(line=amount.line, path=path, what=what, remedy=remedy))
    return found


def resource_of(amounts: Iterable[Entry[str]] | None) -> Resource | None:
    """Read the amounts that have no fault; None when there are none."""
    read: Resource = {}
    for item in amounts or ():
        with suppress(QuantityError):
            read[item.key] = parse_quantity(item.key, item.value)
    return shared(read) if read else None


def resource_faults(partition: PartitionSite) -> list[Fault]:
    """Check the resources of all queues of a partition."""
    return [*quantity_faults(partition), *_tree_faults(partition.root, None)[0]]


def quantity_faults(partition: PartitionSite) -> list[Fault]:
    """Find the resources of queues that are no quantities."""
    return [fault for site in partition.root.walk() for fault in _unreadable(site)]


def _unreadable(site: Site) -> list[Fault]:
    own, template = site.written.resources, site.written.childtemplate.resources
    lists = (own.guaranteed, own.max, template.guaranteed, template.max)
    return [fault for amounts in lists for fault in amount_faults(site.path, amounts)]


def _tree_faults(site: Site, room: Resource | None) -> tuple[list[Fault], Resource]:
    """Check a queue and all below it; return also what it promises, itself or by its children."""
    guaranteed = resource_of(site.written.resources.guaranteed)
    own_max = resource_of(site.written.resources.max)
    effective_max = component_wise_min(own_max, room)
    below = [_tree_faults(child, effective_max) for child in site.children]
    promised: Resource = {}
    for _, promise in below:
        promised = add(promised, promise)
    faults = list(_own_faults(site, guaranteed, own_max, room))
    faults += [fault for child_faults, _ in below for fault in child_faults]
    faults += _promise_faults(site, promised, guaranteed, effective_max)
    return faults, promised if guaranteed is None or is_zero(guaranteed) else guaranteed


def _own_faults(
    site: Site, guaranteed: Resource | None, own_max: Resource | None, room: Resource | None
) -> Iterator[Fault]:
    resources = site.written.resources
    if not fits_in_max_undef(guaranteed, own_max):
        what = (
            f"guaranteed resource {describe(guaranteed)} "
            f"is larger than maximum resource {describe(own_max)} of the queue"
        )
        yield site.fault(resources.line_of("guaranteed"), what, "lower guaranteed or raise max")
    if not fits_in_max_undef(own_max, room):
        what = (
            f"max resource {describe(own_max)} "
            f"is larger than maximum resource {describe(room)} of the parent queues"
        )
        yield site.fault(resources.line_of("max"), what, "lower this max or raise the parent's")


def _promise_faults(
    site: Site, promised: Resource, guaranteed: Resource | None, effective_max: Resource | None
) -> Iterator[Fault]:
    resources = site.written.resources
    for key, limit in (("guaranteed", guaranteed), ("max", effective_max)):
        if not fits_in_max_undef(promised, limit):
            what = (
                f"sum of the guaranteed resources of the children {describe(promised)} "
                f"is larger than the {key} resource {describe(limit)} of the queue"
            )
            remedy = f"lower guaranteed of the children or raise {key} here"
            yield site.fault(resources.line_of(key), what, remedy)

"""Written resources, still text by type, read into quantities when their turn has come.

Faulty quantities are found in the order of the checks, not while the document is read. To a check
that compares resources, a type whose quantity is faulty is not there.
"""

from collections.abc import Iterable
from contextlib import suppress

from yunikorn_actors.config.fault import Fault
from yunikorn_actors.config.written import Entry
from yunikorn_actors.values.quantity import QuantityError, parse_quantity
from yunikorn_actors.values.resource import Resource, shared


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

"""Writing one amount into all the books that it belongs to.

The books are exact (they never saturate), are changed in place and never replaced.
"""

from yunikorn_actors.domain.allocation import Allocation, AskSpec
from yunikorn_actors.domain.application import Application
from yunikorn_actors.domain.resource import Resource


def books_of(app: Application, allocation: Allocation) -> tuple[Resource, ...]:
    return app.placeholder_books if allocation.spec.placeholder else app.allocated_books


def waiting(spec: AskSpec, repeats: int) -> Resource:
    """Return what these repeats add to the pending books: exact, as the books are."""
    if repeats == 1:
        return spec.resource
    return {kind: quantity * repeats for kind, quantity in spec.resource.items()}


def write(books: tuple[Resource, ...], amount: Resource) -> None:
    for kind, quantity in amount.items():
        for book in books:
            try:
                book[kind] += quantity
            except KeyError:
                book[kind] = quantity


def strike(books: tuple[Resource, ...], amount: Resource) -> None:
    for kind, quantity in amount.items():
        for book in books:
            try:
                book[kind] -= quantity
            except KeyError:
                book[kind] = -quantity

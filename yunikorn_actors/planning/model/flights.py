"""Decisions on their way to Context."""

from msgspec import Struct

from yunikorn_actors.domain.resource import Resource, charge
from yunikorn_actors.planning.model.limits import LimitView
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.views import AppView, AskView, QueueView


class Place(Struct):
    """A place among the running applications, taken by a decision that brings nothing yet."""

    app: AppView
    limits: tuple[LimitView, ...]


class InFlight(Struct):
    """One decision on its way to Context, with all that it holds.

    The size is its own: the ask may be sent again with another one meanwhile.
    """

    ask: AskView
    leaf: QueueView
    node: NodeView
    resource: Resource
    limits: tuple[LimitView, ...]
    is_placeholder: bool
    """The ask may be sent again as another kind."""
    goes_first: bool = False
    """The room that was freed for it is kept from others until it has been tried everywhere."""


def used_by(app: AppView, in_flight: dict[int, InFlight]) -> Resource:
    """Return what an application uses: what is allocated, and what is on its way."""
    used = dict(app.app.allocated)
    for held in in_flight.values():
        if held.ask.app is app and not held.is_placeholder:
            charge(used, held.resource)
    return used

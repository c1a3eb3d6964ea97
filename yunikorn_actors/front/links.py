"""Where the parts of a front speak."""

from typing import Generic, NamedTuple, TypeVar

from yunikorn_actors.front.events import Readers
from yunikorn_actors.front.lease import BaseLease
from yunikorn_actors.front.outbox import Outbox
from yunikorn_actors.front.terms import Terms

L = TypeVar("L", bound=BaseLease)


class Links(NamedTuple, Generic[L]):
    """To the core, and to those of the program who hear events; neither makes anybody wait."""

    terms: Terms
    outbox: Outbox
    readers: Readers[L]

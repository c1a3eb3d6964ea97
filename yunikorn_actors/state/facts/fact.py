"""What all facts share: each changes the state, and says which part of it."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from msgspec import Struct

from yunikorn_actors.state.in_words import named_in
from yunikorn_actors.state.partition import PartitionState


class IncidentKind(StrEnum):
    """Of what operators look for first."""

    REFUSED = "refused"
    PREEMPTED = "preempted"
    TIMEOUT = "timeout"
    LOST = "lost"


class Incident(NamedTuple):
    """Something that operators look for first: it went otherwise than somebody wanted."""

    kind: IncidentKind
    subject: str
    """The application, the node, the machine and so on to which it happened."""
    what: str
    key: str = ""
    """Of an ask or allocation of that application."""


Names = dict[str, None]
Touch = Callable[[Any, Names, Names], bool]
"""Notes which applications and nodes a fact changes, both by id and perhaps gone by now; false if
it reaches further."""


def everything(_: Any, __: Names, ___: Names) -> bool:  # noqa: ANN401 - of any fact
    """It changes queues, limits or the size of nodes: it is rare, and reaches far."""
    return False


def nothing(_: Any, __: Names, ___: Names) -> bool:  # noqa: ANN401 - of any fact
    """It changes nothing that is summed up anywhere."""
    return True


def an_application(fact: Any, apps: Names, _: Names) -> bool:  # noqa: ANN401 - of one that has it
    apps[fact.application_id] = None
    return True


def its_application(fact: Any, apps: Names, _: Names) -> bool:  # noqa: ANN401 - of one with a spec
    apps[fact.spec.application_id] = None
    return True


def a_node(fact: Any, _: Names, nodes: Names) -> bool:  # noqa: ANN401 - of one that has it
    nodes[fact.node_id] = None
    return True


def a_place(fact: Any, apps: Names, nodes: Names) -> bool:  # noqa: ANN401 - of one that has both
    return an_application(fact, apps, nodes) and a_node(fact, apps, nodes)


def its_place(fact: Any, apps: Names, nodes: Names) -> bool:  # noqa: ANN401 - of one with a spec
    return its_application(fact, apps, nodes) and a_node(fact, apps, nodes)


class Base(Struct, frozen=True, kw_only=True, tag=True, tag_field="fact", gc=False):
    """What all facts share: on the wire each says which it is."""

    touches: ClassVar[Touch] = everything
    is_record: ClassVar[bool] = False
    """No decision depends on it: it tells what was found, or what is to happen later."""

    def change(self, state: PartitionState) -> None:
        """Bring every book of the state up to date; nothing is checked here."""
        raise NotImplementedError

    def in_words(self) -> str:
        """Say it on one line: the names in it, where the fact does not say it better."""
        return named_in(self)

    def incidents(self) -> Iterable[Incident]:
        """List what of it operators look for first: of most facts nothing."""
        return ()

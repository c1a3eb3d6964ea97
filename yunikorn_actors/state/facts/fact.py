"""What all facts share: each changes the state, and can be put into words."""

from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar, NamedTuple

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


class Base(Struct, frozen=True, kw_only=True, tag=True, tag_field="fact", gc=False):
    """What all facts share: on the wire each says which it is."""

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

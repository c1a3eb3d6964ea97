"""Rules on attributes of nodes: where an ask, or a member of a gang, may go."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from yunikorn_actors.errors import InvalidRequest
from yunikorn_actors.front.arguments import shown
from yunikorn_actors.front.lease import Running

NODE: Final = "node"
"""As an attribute: the id of the node itself."""
Where = Mapping[str, str | Iterable[str]]
Apart = str | Mapping[str, str]


class Rule(NamedTuple):
    """Where an ask may go, by attributes of nodes."""

    where: tuple[tuple[str, frozenset[str]], ...]
    """Attributes, each with the values that will do."""
    spread: str
    """The attribute over whose values the asks of its application are spread; or empty."""
    apart: tuple[tuple[str, str], ...]
    """Attributes, each with a name: asks with that name have different values there."""


def read_rule(what: str, where: Where | None, spread: str, apart_from: Apart) -> Rule | None:
    """Read the arguments of an ask, or of a group of a gang; None if there is no rule."""
    if where is None and not spread and not apart_from:
        return None
    if not isinstance(spread, str):
        raise InvalidRequest(f"{what}: spread: must be an attribute of nodes, not {shown(spread)}")
    return Rule(_read_where(what, where), spread, _read_apart(what, apart_from))


def rule_of(running: Running) -> Rule | None:
    """Return what others have to heed of work that runs already."""
    if not running.spread and not running.apart_from:
        return None
    return Rule((), running.spread, _read_apart("running", running.apart_from))


def _read_where(what: str, where: Where | None) -> tuple[tuple[str, frozenset[str]], ...]:
    if where is not None and not isinstance(where, Mapping):
        raise InvalidRequest(
            f"{what}: where: must be a mapping such as {{'zone': 'a'}}, not {shown(where)}"
        )
    return tuple((str(name), _read_values(what, name, it)) for name, it in (where or {}).items())


def _read_values(what: str, name: str, values: object) -> frozenset[str]:
    several = (values,) if isinstance(values, str) else values
    if isinstance(several, Iterable):
        found = frozenset(several)
        if found and all(isinstance(it, str) for it in found):
            return found
    raise InvalidRequest(f"{what}: where: {name}: must be a text or several, not {shown(values)}")


def _read_apart(what: str, apart_from: Apart) -> tuple[tuple[str, str], ...]:
    # A name alone means: not on the same node.
    named = {NODE: apart_from} if isinstance(apart_from, str) and apart_from else apart_from or {}
    if not isinstance(named, Mapping) or not all(
        isinstance(it, str) and it for pair in named.items() for it in pair
    ):
        raise InvalidRequest(
            f"{what}: apart_from: must be a name, or a mapping such as {{'zone': 'db'}}, not "
            f"{shown(apart_from)}"
        )
    return tuple(named.items())

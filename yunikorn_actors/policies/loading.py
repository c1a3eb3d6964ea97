"""Policies by the place where they stand, as commands, scenarios and tapes name it."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from operator import attrgetter
from typing import Any, Final, NamedTuple

from yunikorn_actors.policies.guard import tried
from yunikorn_actors.policies.registry import InvalidPolicy, Policies, Policy

_MAIN: Final = "__main__"


class PolicyPlace(NamedTuple):
    """Where another process finds a policy that was given to this one."""

    name: str
    place: str
    """MODULE:ATTRIBUTE; empty where no module has it under its own name."""
    digest: str


def found_at(place: str) -> Any:  # noqa: ANN401 - whatever stands there
    """Load what MODULE:ATTRIBUTE names; a module in the present folder is found as with `-m`."""
    module, _, attribute = place.partition(":")
    if not module or not attribute:
        raise InvalidPolicy(f"{place!r:.100}: give MODULE:ATTRIBUTE, such as mine:ShortestFirst")
    if "" not in sys.path:
        sys.path.insert(0, "")
    found, fault = tried("loading it", lambda: attrgetter(attribute)(import_module(module)))
    if fault:
        raise InvalidPolicy(f"{place}: {fault}")
    return found


@lru_cache(maxsize=8)
def policies_at(place: str) -> Policies:
    """Load a mapping of names to policies."""
    found = found_at(place)
    if not isinstance(found, Mapping):
        raise InvalidPolicy(f"{place}: must be a mapping of names to policies")
    try:
        return Policies(found)
    except InvalidPolicy as error:
        raise InvalidPolicy(f"{place}: {error}") from None


def places_of(policies: Policies) -> Iterator[PolicyPlace]:
    """Yield where each of the given policies stands."""
    for name, policy in policies.given.items():
        yield PolicyPlace(name, _place_of(policy), policies.digest(name))


def _place_of(policy: Policy) -> str:
    module = getattr(policy, "__module__", _MAIN)
    attribute = getattr(policy, "__qualname__", "")
    # What a program has as its main module is another one in each process.
    if module == _MAIN or not attribute:
        return ""
    found, _ = tried("finding it", lambda: attrgetter(attribute)(sys.modules[module]))
    return f"{module}:{attribute}" if found is policy else ""


def loaded_from(places: Iterable[PolicyPlace]) -> tuple[Policies, dict[str, str]]:
    """Load them once more; return them, and by name why one of them cannot be had here."""
    loaded: dict[str, Policy] = {}
    faults: dict[str, str] = {}
    for it in places:
        if not it.place:
            faults[it.name] = "no module has it under the name of its class"
            continue
        try:
            policies = Policies({it.name: found_at(it.place)})
        except InvalidPolicy as error:
            faults[it.name] = str(error)
        else:
            if policies.has(it.name, it.digest):
                loaded |= policies.given
            else:
                faults[it.name] = f"{it.place} was changed since the service loaded it"
    return Policies(loaded), faults

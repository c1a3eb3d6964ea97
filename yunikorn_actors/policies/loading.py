"""Policies by the place where they stand, as commands, scenarios and tapes name it."""

import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from operator import attrgetter
from typing import Any

from yunikorn_actors.policies.guard import tried
from yunikorn_actors.policies.registry import InvalidPolicy, Policies


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

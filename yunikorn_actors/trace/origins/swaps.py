"""Which member took over which placeholder: with the one, the other is wanted too.

A member that is parked, and later in its place, has its room from a placeholder with another key
and another UUID. What is asked back and given back is the placeholder, and these messages do not
name the member. So the names are followed through the facts that link them.
"""

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from yunikorn_actors.state import facts as f
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.trace.filters import FilterOptions
from yunikorn_actors.trace.origins.message_parts import new_facts_in
from yunikorn_actors.trace.records.record_index import Places


def along_swaps(path: Path, wanted: FilterOptions) -> FilterOptions:
    """Return the same filter, extended by those that the named asks were swapped with."""
    if not wanted.about:
        return wanted
    keys: dict[str, None] = {}
    uuids: dict[str, None] = {}
    places, named = Places(path), set[str]()
    while not named.issuperset(names := {*wanted.about, *keys, *uuids}):
        named = names
        for _, fact in new_facts_in(places.speaking_of(named)):
            for key, uuid in _swapped_in(fact, named):
                if key:
                    keys[key] = None
                if uuid:
                    uuids[uuid] = None
    keys_first = (*keys, *uuids)
    return replace(wanted, along=tuple(it for it in keys_first if it not in wanted.about))


def _swapped_in(fact: f.Fact, named: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the key and the UUID of either side of a swap that has one of the names."""
    match fact:
        case f.AskParked(key=key, placeholder=uuid):
            sides = [(key, ""), ("", uuid)]
        case f.ReleaseRequested(key=key, uuid=uuid, type=TerminationType.PLACEHOLDER_REPLACED):
            sides = [(key, uuid)]
        case f.SwapCompleted(key=key, uuid=uuid):
            sides = [(key, uuid), (fact.placeholder_key, fact.placeholder)]
        case _:
            return
    if any(name in named for side in sides for name in side):
        yield from sides

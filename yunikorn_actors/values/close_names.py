"""Names in words: like one that is not there, and the first of many."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

_COMPARED_MAX: Final = 1_000
_LISTED_MAX: Final = 3
"""So many names are listed where nothing else is wanted."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, sorted(known), n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def first_few(names: Iterable[str], most: int | None = None) -> str:
    """List the first ones, and count the rest."""
    listed, most = list(names), _LISTED_MAX if most is None else most
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return f"{', '.join(listed[:most])}{more}"


def there_is(name: str, known: Collection[str]) -> str:
    """List what is there, that which looks like the name first."""
    near = get_close_matches(name, islice(known, _COMPARED_MAX))
    return f"there is {first_few(dict.fromkeys([*near, *known])) or 'none'}"

"""Names like one that is not there."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, sorted(known), n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""

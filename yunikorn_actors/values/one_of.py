"""One regular expression for many words.

`re` tries the words of `a|b|c` one after the other at each place. Here they share what they begin
with, so that a place is given up after its first letter.
"""

import re
from collections import defaultdict
from collections.abc import Iterable


def one_of(words: Iterable[str]) -> str:
    """Write an expression that finds any of the words; of several at one place, any."""
    by_first: dict[str, list[str]] = defaultdict(list)
    for word in words:
        by_first[word[:1]].append(word[1:])
    if "" in by_first:
        return ""
    branches = [re.escape(first) + one_of(rest) for first, rest in sorted(by_first.items())]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"

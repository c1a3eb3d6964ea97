"""One expression finds what each of many words would."""

import re
from random import Random

from yunikorn_actors.values.masking import one_of


def test_it_finds_what_the_words_find() -> None:
    random = Random(7)  # noqa: S311
    found = 0
    for _ in range(300):
        words = ["".join(random.choices("ab.-", k=random.randrange(1, 5))) for _ in range(6)]
        text = "".join(random.choices("ab.-x", k=12))
        holds = any(word in text for word in words)
        assert (re.search(one_of(words), text) is not None) == holds, (words, text)
        found += holds
    assert 30 < found < 290, "vacuous"

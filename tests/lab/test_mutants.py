"""Each mutant edits something that is there, leaves sound code behind, and goes without a trace."""

import builtins
import dis
from collections import ChainMap, Counter
from collections.abc import Iterator
from types import CodeType
from typing import Any

import pytest

from yunikorn_actors.lab.mutants.corpus import CORPUS, INEXPRESSIBLE
from yunikorn_actors.lab.mutants.mutant import Mutant, StaleMutant, function_of

IDS = [mutant.id for mutant in CORPUS]


def test_the_corpus_is_large_and_named() -> None:
    assert len(CORPUS) >= 60
    assert max(Counter(IDS).values()) == 1
    races = {f"M{number:02}" for number in range(1, 25)}
    assert races == {id_ for id_ in IDS if id_ in races} | INEXPRESSIBLE.keys()
    assert len(races & set(IDS)) >= 18
    instead = [it.instead for it in INEXPRESSIBLE.values()]
    assert len(instead) == len(set(instead) & set(IDS) - races)


@pytest.mark.parametrize("mutant", CORPUS, ids=IDS)
def test_it_edits_what_is_there_and_is_undone(mutant: Mutant) -> None:
    function = function_of(mutant.where)
    original = function.__code__
    with mutant.applied():
        assert function.__code__ != original
    assert function.__code__ is original


def test_it_is_undone_whatever_happens() -> None:
    function = function_of(CORPUS[0].where)
    original = function.__code__
    with pytest.raises(ZeroDivisionError), CORPUS[0].applied():
        raise ZeroDivisionError
    assert function.__code__ is original


def test_they_use_names_that_exist() -> None:
    """Each is to be found by what it does, and not by a NameError."""
    strangers = {
        mutant.id: [name for name in _globals(mutant.code()) if name not in _known_to(mutant)]
        for mutant in CORPUS
    }
    assert {} == {id_: names for id_, names in strangers.items() if names}


def _known_to(mutant: Mutant) -> ChainMap[str, Any]:
    return ChainMap(vars(builtins), function_of(mutant.where).__globals__)


def test_they_say_what_is_wrong() -> None:
    assert [] == [
        mutant.id
        for mutant in CORPUS
        if not (mutant.source and mutant.wrong.endswith(".") and mutant.wrong[0].isupper())
    ]


def test_one_that_no_longer_fits_says_so() -> None:
    stale = CORPUS[0]._replace(old="nobody ever wrote this")
    with pytest.raises(StaleMutant, match="edit the mutant"):
        stale.code()


def _globals(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in {"LOAD_GLOBAL", "LOAD_NAME"}:
            yield instruction.argval
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals(inner)

"""Each mutant edits something that is there, leaves sound code behind, and goes without a trace."""

import builtins
import dis
from collections import Counter
from collections.abc import Iterator
from types import CodeType

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


@pytest.mark.parametrize("mutant", CORPUS, ids=IDS)
def test_it_uses_names_that_exist(mutant: Mutant) -> None:
    """It is to be found by what it does, and not by a NameError."""
    known = {**vars(builtins), **function_of(mutant.where).__globals__}
    assert [] == [name for name in _globals(mutant.code()) if name not in known]


@pytest.mark.parametrize("mutant", CORPUS, ids=IDS)
def test_it_says_what_is_wrong(mutant: Mutant) -> None:
    assert mutant.source
    assert mutant.wrong.endswith(".")
    assert mutant.wrong[0].isupper()


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
